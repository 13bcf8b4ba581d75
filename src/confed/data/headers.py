"""What people call the columns of their files, in English, German, French and Spanish.

Case, spaces, signs and accents do not count: Customer ID, customer_id and CustomerID are one name, Käufer is kaufer.
The usual names of a role stand in ranks: an explicit id goes before a code, a code before a bare noun, and that before
a name. What one language has and another means otherwise is left out (`note` is a mark in French, and text in English).
"""

from __future__ import annotations

import re
import unicodedata

_PEOPLE = (
    "user|customer|client|member|buyer|shopper|consumer|reader|viewer|listener|player|learner|student|account|"
    "subscriber|visitor|guest|patron|reviewer|rater|person|household|"
    "kunden?|kundin|kae?ufer|(be)?nutzer|mitglieds?|leser|hoe?rer|spieler|teilnehmer|abonnent|besucher|haushalts?|konto|"
    "utilisateur|membre|acheteur|lecteur|joueur|abonne|visiteur|compte|"
    "cliente|usuario|comprador|miembro|socio|lector|suscriptor|cuenta"
)
_GOODS = "item|product|article|artikel|produkt|waren?|produit|producto|articulo"
"""Whatever is sold: a product may be a book."""
_KINDS = (
    "track|song|album|artist|podcast|movie|film|video|show|series|episode|anime|book|game|app|course|recipe|restaurant|"
    "business|venue|hotel|news|"
    "buch|lied|serien?|spiel|kurs|rezept|livre|chanson|jeu|cours|recette|libro|cancion|pelicula|juego|curso|receta"
)
_THINGS = f"{_GOODS}|{_KINDS}"
_EVENTS = "event|interaction|action|order|purchase|sale|sales|invoice|transaction|checkout|rating|review|click|checkin"
_PASTIMES = "play|listen|stream|watch|view|visit|read|loan"
"""They take time: watch_time is how long."""
_DONE = (
    "ordered|purchased|bought|sold|rated|reviewed|played|listened|streamed|watched|viewed|visited|clicked|read|"
    "borrowed|consumed|completed|occurred|happened"
)
_WRITTEN = "created|added|recorded|logged|submitted|posted"
_GERMAN_EVENTS = "bestell(ungs)?|kauf|verkaufs|rechnungs|auftrags|buchungs|bewertungs|transaktions|ereignis|(aus)?leih"
_GERMAN_DONE = "bestellt|gekauft|verkauft|bewertet|gespielt|gehoe?rt|gesehen|besucht|gelesen|ausgeliehen"
_ROMANCE_EVENTS = (
    "commande|achat|vente|facture|avis|transaction|visite|lecture|ecoute|pret|"
    "pedido|compra|venta|factura|valoracion|transaccion|visita|lectura|prestamo"
)
_OF = "(de|du|des|dela|del|d)?"
"""date d'achat, numero de cliente."""
_ID = "(id|idx|uuid|guid)"
_ID_BEFORE = f"(id|identifiant|identificador){_OF}"
_CODE = "(key|code|no|nr|number|nummer|kennung|num|numero|ref)"
_CODE_BEFORE = f"(n|no|num|numero|code|codigo|ref|reference|referencia){_OF}"
_NAME = "(name|title|titel|bezeichnung|label)"
_NAME_BEFORE = f"(nom|titre|libelle|designation|nombre|titulo){_OF}"
_TITLE = "title|titel|titre|titulo"
_BARE_NAME = "name|bezeichnung|label|nom|libelle|designation|nombre"
_DESCRIPTION = "description|beschreibung|descripcion"

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "user": (
        rf"user{_ID}|iduser|uid",
        rf"({_PEOPLE}){_ID}|{_ID_BEFORE}({_PEOPLE})",
        rf"({_PEOPLE}){_CODE}|{_CODE_BEFORE}({_PEOPLE})",
        "user",
        _PEOPLE,
        "username|(be)?nutzername|login|(user|customer|kunden)?email",
    ),
    "item": (
        rf"item{_ID}|iditem|iid",
        rf"({_THINGS}){_ID}|{_ID_BEFORE}({_THINGS})",
        rf"sku|asin|isbn|ean|upc|gtin|barcode|stockcode|mid|({_GOODS}){_CODE}|{_CODE_BEFORE}({_GOODS})",
        "item",
        _THINGS,
        rf"({_THINGS}){_NAME}|{_NAME_BEFORE}({_THINGS})|{_TITLE}|bezeichnung|libelle|designation",
    ),
    # Only names that are surely numbers: a rating that is none is refused.
    "rating": (
        "rating|bewertung|calificacion|puntuacion|valoracion",
        "ratings|bewertungen",
        rf"(user|star|review|{_THINGS})rating|rating(value|score)",
        "score|punktzahl",
        "stars|sterne|etoiles|estrellas",
        "overall",
        "weight",
    ),
    "timestamp": (
        "timestamp|ts|zeitstempel|horodatage|marcadetiempo",
        rf"unix(time|timestamp|reviewtime)|epoch|({_EVENTS}|{_PASTIMES})timestamp",
        rf"datetime|({_EVENTS})time|({_EVENTS}|{_PASTIMES})(date|datetime)|({_DONE})(at|on|date)|"
        rf"({_GERMAN_EVENTS})(datum|zeit|zeitpunkt)|({_GERMAN_DONE})am|(date|fecha){_OF}({_ROMANCE_EVENTS})",
        rf"({_WRITTEN})(at|on|date|time)|date({_WRITTEN})|"
        rf"(erstellt|angelegt|erfasst)am|erstellungsdatum|date{_OF}(creation|ajout)|fecha{_OF}(creacion|alta|registro)",
        "when|date|time|wann|datum|zeit|zeitpunkt|uhrzeit|heure|fecha|hora",
    ),
}


def plain_name(name: str) -> str:
    """user_id:token, userId and "User ID" all become userid; umlauts and accents become their letters."""
    letters = unicodedata.normalize("NFKD", name.partition(":")[0].casefold())
    return re.sub(r"[^a-z0-9]", "", letters)


def is_usual(role: str, name: str) -> bool:
    return any(re.fullmatch(rank, plain_name(name)) for rank in USUAL_NAMES[role])


def title_ranks(item: str) -> list[tuple[bool, str]]:
    """Of an item column, by its name, what its titles are called, the most usual first; and whether they are surely
    the items': a bare `name` may be anybody's. Nothing where items are called by their titles.
    """
    own = plain_name(item)
    if re.fullmatch(USUAL_NAMES["item"][-1], own):
        return []
    found = re.fullmatch(rf"(?:{_ID_BEFORE}|{_CODE_BEFORE})?(?P<noun>{_THINGS})(?:{_ID}|{_CODE})?", own)
    noun = found["noun"] if found else _THINGS
    nouns = [noun] if re.fullmatch(_KINDS, noun) else [noun, _THINGS]
    named = [(True, rf"({one}){_NAME}|{_NAME_BEFORE}({one})") for one in nouns]
    described = [(True, rf"({one})({_DESCRIPTION})|({_DESCRIPTION}){_OF}({one})") for one in nouns]
    return [*named, (False, _TITLE), (False, _BARE_NAME), *described, (False, _DESCRIPTION)]
