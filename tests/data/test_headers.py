"""What columns are called."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.data.headers import USUAL_NAMES, is_usual, plain_name, title_ranks


@pytest.mark.parametrize(
    "other", ["price", "quantity", "review", "country_code", "order_id", "track_number", "watch_time", "id", "day"]
)
def test_names_that_say_nothing(other: str) -> None:
    assert not any(is_usual(role, other) for role in ("user", "item", "rating", "timestamp"))


@given(
    st.lists(st.sampled_from(["customer", "Id", "id", "ID"]), min_size=1, max_size=3),
    st.sampled_from([" ", "_", "-", ""]),
)
def test_case_and_signs_do_not_count(words: list[str], sign: str) -> None:
    assert plain_name(sign.join(words)) == "".join(words).lower()
    assert plain_name(sign.join(words) + ":token") == "".join(words).lower()


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("Käufer", "kaufer"),
        ("GRÖSSE", "grosse"),
        ("Größe", "grosse"),
        ("Libellé", "libelle"),
        ("Año", "ano"),
        ("N°", "n"),
    ],
)
def test_umlauts_and_accents_are_letters(written: str, plain: str) -> None:
    assert plain_name(written) == plain
    assert plain_name(unicodedata.normalize("NFD", written)) == plain, "however they are encoded"


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("user", "Kunde Kundennummer Kunden-ID Kunden_Nr Käufer Kaeufer Benutzer Nutzer-ID Mitgliedsnummer E-Mail"),
        (
            "user",
            "client_id id_client numéro_client code_client utilisateur abonné cliente usuario id_usuario num_cliente",
        ),
        (
            "item",
            "Artikel Artikelnummer Artikel-Nr. Produkt ProduktID Produktbezeichnung Buch Titel produit ref_produit",
        ),
        ("item", "code_article livre titre producto código_producto artículo id_película"),
        ("rating", "Bewertung Sterne étoiles calificación puntuación valoración estrellas"),
        (
            "timestamp",
            "Datum Zeitstempel Zeitpunkt Bestelldatum Kaufdatum Rechnungsdatum erstellt_am bestellt_am horodatage",
        ),
        ("timestamp", "date_achat date_de_commande fecha fecha_compra fecha_de_pedido fecha_de_creación"),
    ],
)
def test_other_languages(role: str, names: str) -> None:
    for name in names.split():
        assert [other for other in USUAL_NAMES if is_usual(other, name)] == [role], name


def test_items_that_are_called_by_their_titles_have_no_others() -> None:
    assert title_ranks("Artikelbezeichnung") == title_ranks("movie_title") == []
    assert title_ranks("Artikelnummer") and title_ranks("what")
