"""The conformance of methods that have two domains in one place."""

from confed.data.domain_split import DomainSplit
from confed.data.matching import match
from confed.testing import MethodConformance, tiny_domains


class TwoDomainConformance(MethodConformance):
    def cut(self):
        return pair(tiny_domains.cut())

    def cut_with_other_held_out_items(self):
        return pair(tiny_domains.cut_with_other_held_out_items())

    def test_everybody_takes_part_once(self):
        assert self.trainer().round(1).participants == self.cut().users

    def test_it_has_one_view_and_sends_nothing(self):
        trainer = self.trainer()
        assert (trainer.view, trainer.views) == ("global", ("global",))
        assert self.chosen.upload_parts(self.terms(), self.cut()) == {}


def pair(of):
    """The first two domains of a split of three."""
    parts = {name: of.parts[name] for name in ("a", "b")}
    return DomainSplit(parts, match({name: part.user_ids for name, part in parts.items()}))
