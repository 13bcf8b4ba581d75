import pytest
import torch

from confed.errors import MessageError
from confed.messages import PeopleRows, people_schema


def rows():
    return PeopleRows(
        torch.tensor([4, 0, 7]),
        {"mean": torch.arange(6.0).view(3, 2), "deviation": torch.ones(3, 2)},
        torch.tensor(0.25, dtype=torch.float64),
    )


def schema(everybody=8, loss=True, **widths):
    return people_schema({"mean": 2, "deviation": 2, **widths}, torch.float32, everybody, loss=loss)


def test_rows_go_through_bytes():
    again = PeopleRows.from_bytes(rows().to_bytes(), schema())
    assert again.people.tolist() == [4, 0, 7] and float(again.loss) == 0.25
    assert all(torch.equal(again.tensors[name], tensor) for name, tensor in rows().tensors.items())
    assert rows().nbytes == len(rows().to_bytes())


def test_rows_of_some_people():
    some = rows().of(torch.tensor([7, 4, 5]))
    assert some.people.tolist() == [4, 7]
    assert some.tensors["mean"].tolist() == [[0.0, 1.0], [4.0, 5.0]]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (schema(everybody=7), "'people' has 0 to 7, declared is 0 to 6"),
        (schema(mean=3), "'rows/mean' has shape"),
        (schema(loss=False), "not declared: 'loss'"),
        (schema(ratings=1), "missing: 'rows/ratings'"),
    ],
)
def test_rows_that_were_not_agreed_on_are_refused(expected, said):
    with pytest.raises(MessageError, match=said):
        PeopleRows.from_bytes(rows().to_bytes(), expected)


def test_rows_about_others_or_in_another_order_are_refused():
    assert rows().about(torch.tensor([4, 0, 7])).keys() == {"mean", "deviation"}
    for people in ([0, 4, 7], [4, 0], [4, 0, 6]):
        with pytest.raises(MessageError, match="these are about others"):
            rows().about(torch.tensor(people))


def test_nobody_is_spoken_of_twice():
    twice = PeopleRows(torch.tensor([4, 4, 7]), rows().tensors, rows().loss)
    with pytest.raises(MessageError, match="'people' names somebody twice"):
        PeopleRows.from_bytes(twice.to_bytes(), schema())
