"""Which column plays which role, by its name."""

from __future__ import annotations

import re

import pytest

from confed.data.columns import places_by_name, places_by_number
from confed.errors import ConfedError


def found(header: str, **given: str) -> dict[str, str]:
    """The chosen columns by role."""
    names = re.split("[,;]", header)
    return {role: names[place] for role, place in places_by_name(names, given, "orders.csv").items()}


@pytest.mark.parametrize(
    "person", ["user", "customer", "client", "member", "buyer", "shopper", "reader", "viewer", "account", "subscriber"]
)
@pytest.mark.parametrize(
    "thing", ["item", "product", "sku", "article", "track", "movie", "film", "book", "video", "game"]
)
def test_usual_nouns_bare_and_as_ids(person: str, thing: str) -> None:
    for user in (person, f"{person}_id", f"{person.title()}ID", f"{person.upper()} UUID", f"id-{person}"):
        for item in (thing, *([f"{thing}_id", f"{thing.title()} Id"] if thing != "sku" else [])):
            assert found(f"x,{item},y,{user}") == {"user": user, "item": item}


@pytest.mark.parametrize(
    "when",
    [
        *(
            "when",
            "date",
            "time",
            "datetime",
            "timestamp",
            "ts",
            "purchased_at",
            "created_at",
            "ordered_at",
            "order_date",
        ),
        *("played_at", "watched_at", "event_time", "Invoice Date", "review-date", "unixReviewTime", "date_added"),
    ],
)
def test_usual_names_of_times(when: str) -> None:
    assert found(f"user,item,{when}")["timestamp"] == when


@pytest.mark.parametrize("rating", ["rating", "Ratings", "score", "stars", "star_rating", "Book-Rating", "user rating"])
def test_usual_names_of_ratings(rating: str) -> None:
    assert found(f"user,item,{rating}")["rating"] == rating


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (
            "order_id,customer_name,customer_id,product_name,product_id,order_date",
            "customer_id product_id order_date product_name",
        ),
        (
            "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,CustomerID",
            "CustomerID StockCode InvoiceDate Description",
        ),
        ("event_time,event_type,product_id,category_id,brand,user_id,user_session", "user_id product_id event_time"),
        ("reviewerID,asin,reviewerName,overall,unixReviewTime,reviewTime", "reviewerID asin overall unixReviewTime"),
        ("user,userid,item,itemid", "userid itemid"),
        ("user,customer_id,item,sku", "customer_id sku"),
        ("product,product_code,member,member_no", "member_no product_code"),
        ("customer,product,timestamp,date,created_at", "customer product timestamp"),
        ("customer,product,order_date,created_at", "customer product order_date"),
        ("username,movie_title,stars", "username movie_title stars"),
        ("user_id,artist_name,track_id,track_name", "user_id track_id track_name"),
        ("user_id,artist_name,track_id", "user_id track_id"),
        ("user_id,asin,product_title", "user_id asin product_title"),
        ("customer,article_no,description,when", "customer article_no description when"),
        ("kunde,artikelnr,bezeichnung,datum", "kunde artikelnr bezeichnung datum"),
        (
            "Kundennummer;Kunde;Artikel;Artikelnummer;Bewertung;Bestelldatum",
            "Kundennummer Artikelnummer Bewertung Bestelldatum",
        ),
        ("Kunden-ID;Produkt;Preis;Zeitstempel;Datum", "Kunden-ID Produkt Zeitstempel"),
        ("Käufer;Artikel-Nr.;Artikelbezeichnung;gekauft am", "Käufer;Artikel-Nr.;Artikelbezeichnung;gekauft am"),
        (
            "n° client;référence produit;désignation;date de commande",
            "n° client;référence produit;désignation;date de commande",
        ),
        (
            "Identifiant client;Code article;Libellé article;Date d'achat",
            "Identifiant client;Code article;Libellé article;Date d'achat",
        ),
        ("usuario;película;valoración;fecha", "usuario;película;valoración;fecha"),
        (
            "Código de cliente;ID producto;Descripción;Fecha de compra",
            "Código de cliente;ID producto;Descripción;Fecha de compra",
        ),
        ("user_id;artikelnr;produktname", "user_id;artikelnr;produktname"),
        ("user_id;product_id;product_name;product_description", "user_id;product_id;product_name"),
    ],
)
def test_an_explicit_id_goes_before_a_bare_noun_and_that_before_a_name(header: str, chosen: str) -> None:
    assert set(found(header).values()) == set(chosen.split(";") if ";" in chosen else chosen.split())


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "customer_id,account_id,item",
            "customer_id and account_id look equally like the user id: .* user=",
        ),
        ("user,artist,album,track", "artist, album and track look equally like the item id: .* item="),
        ("user,item,date,time", "date and time look equally like the time stamp: .* timestamp="),
        ("user,item,user_rating,movie_rating", "user_rating and movie_rating look equally like the rating: "),
        ("user_id,userId,item", "user_id and userId look equally like the user id"),
    ],
)
def test_a_real_choice_is_the_users(header: str, message: str) -> None:
    with pytest.raises(ConfedError, match="orders.csv: " + message.replace("(", r"\(").replace(")", r"\)")):
        found(header)


def test_what_is_named_is_taken_and_settles_a_choice() -> None:
    assert found("customer_id,account_id,item", user="account_id") == {"user": "account_id", "item": "item"}
    assert found("item,user", user="item", item="user") == {"user": "item", "item": "user"}
    assert found("who,item_id,user", item="who") == {"user": "user", "item": "who"}


def test_titles_say_whose_they_are_or_may_be_anybodys() -> None:
    assert found("user,item,movie_title")["title"] == "movie_title"
    assert found("user,movie_id,title")["name"] == "title"
    assert found("user,movie_id,name,title")["name"] == "title"
    assert "title" not in found("user,item_id,product_name,movie_title"), "one of two is not the title"
    assert set(found("user,track_name,artist_name", item="track_name")) == {"user", "item"}


def test_what_is_missing_lists_what_there_is() -> None:
    with pytest.raises(ConfedError, match=r"no column looks like the user id; its columns are who, item: .*user=$"):
        found("who,item")
    with pytest.raises(ConfedError, match="is data, say header=False"):
        places_by_name(["a", "b"], {}, "orders.csv", header=True)
    with pytest.raises(ConfedError, match=r"there is no column 'stars'.*rating="):
        found("user,item", rating="stars")


def test_titles_may_be_named() -> None:
    assert found("user,item,product_name,sold_as", title="sold_as")["title"] == "sold_as"
    assert "name" not in found("user,item,name,sold_as", title="sold_as")
    assert found("user,product", title="product") == {"user": "user", "item": "product", "title": "product"}
    with pytest.raises(ConfedError, match=r"there is no column 'label'.*title="):
        found("user,item", title="label")
    assert places_by_number(["1", "2", "3"], {"title": "3"}, "a") == {"user": 0, "item": 1, "title": 2}


def test_without_header_columns_are_numbers() -> None:
    assert places_by_number(["1", "2", "3"], {}, "a") == {"user": 0, "item": 1, "rating": 2}
    assert places_by_number(["1", "2", "3"], {"timestamp": "3"}, "a") == {"user": 0, "item": 1, "timestamp": 2}
    assert places_by_number(["1", "2"], {"user": "2", "item": "1"}, "a") == {"user": 1, "item": 0}
    with pytest.raises(ConfedError, match="columns are numbers; 'who' is none"):
        places_by_number(["1", "2"], {"user": "who"}, "a")


@pytest.mark.parametrize(
    ("header", "given", "places"),
    [
        ("user,item,user", {}, "1 and 3"),
        ("user,item,user", {"user": "user"}, "1 and 3"),
        ("item,user,rating,rating,rating", {}, "3 and 4 and 5"),
        ("who,item,who", {"user": "who"}, "1 and 3"),
    ],
)
def test_two_columns_of_one_name_are_refused_with_their_places(header: str, given: dict[str, str], places: str) -> None:
    with pytest.raises(ConfedError, match=rf"a\.csv: columns {places} are both called '\w+'; rename one of them"):
        places_by_name(header.split(","), given, "a.csv")


def test_names_that_nobody_needs_may_be_alike() -> None:
    assert places_by_name(["user", "note", "item", "note"], {}, "a.csv") == {"user": 0, "item": 2}
