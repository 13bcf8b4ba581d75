"""The datasets we know by name: the files in which each comes, what it must contain, terms and citation.

An entry lists the files in which a dataset may come ("copies": ours, the publisher's, RecBole's) with the time each of
them knows, and the counts and content hash that it must give after filtering. Datasets of several domains have entries
of their own kind, `DomainsEntry`: one file per domain, and a filter that looks at all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from confed.data.sources import Download, Remote, Wheel

Time = Literal["real", "order", "none"]
PseudoTime = Literal["item-order", "file-order"]


@dataclass(frozen=True)
class Copy:
    """A file in which a dataset comes, by its path in the user's folder or the cache."""

    file: str
    time: Time
    content_hash: str | None = None
    """Of the filtered interactions; None where nobody has computed it yet: only the counts are checked."""
    format: str | None = None


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset with a name."""

    name: str
    title: str
    copies: tuple[Copy, ...]
    """In order of preference; the first is the one that the papers' figures are computed from."""
    users: int
    items: int
    interactions: int
    terms: str
    citation: str
    min_interactions: int = 1
    """Users with fewer rows are dropped, as in the papers."""
    pseudo_time: PseudoTime = "file-order"
    remotes: tuple[Remote, ...] = ()
    titles: tuple[str, ...] = ()
    """Files that may hold item titles."""
    counts_checked: bool = True
    """False: these are the published counts and nobody here has seen the file."""
    note: str = ""

    @property
    def time(self) -> Time:
        return self.copies[0].time

    @property
    def file(self) -> str:
        return self.copies[0].file

    @property
    def content_hash(self) -> str | None:
        return self.copies[0].content_hash

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(copy.file for copy in self.copies)


@dataclass(frozen=True)
class DomainFile:
    """One domain: the files in which it may come, and what it holds after the filter of its entry."""

    files: tuple[str, ...]
    """In order of preference."""
    users: int
    items: int
    interactions: int
    content_hash: str
    remotes: tuple[Remote, ...] = ()
    origin: str = ""
    """What a file that cannot be fetched is made from."""


@dataclass(frozen=True)
class DomainsEntry:
    """A dataset of several domains with a name."""

    name: str
    title: str
    domains: Mapping[str, DomainFile]
    """In their order, which CDRIB's cold split depends on (decisions.md "Several domains")."""
    terms: str
    citation: str
    optional: Mapping[str, str] = field(default_factory=dict)
    """Further domains and their files, used where the file is at hand; the counts then differ and are not checked."""
    min_rating: float | None = None
    """Interactions with a lower rating are dropped first."""
    core: tuple[int, int] | None = None
    """Least rows per user in every domain, and per item; see `Domains.core`."""
    time: Time = "none"
    note: str = ""


_MOVIELENS_TERMS = (
    "MovieLens: research use, acknowledge it in publications, no redistribution without separate permission, "
    "no commercial use without permission of GroupLens (University of Minnesota)."
)
_MOVIELENS_CITATION = (
    "F. M. Harper and J. A. Konstan. The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015."
)
_LASTFM_TERMS = "Last.fm (HetRec 2011): non-commercial use only."
_LASTFM_CITATION = (
    "I. Cantador, P. Brusilovsky and T. Kuflik. Second Workshop on Information Heterogeneity and Fusion in "
    "Recommender Systems (HetRec 2011). RecSys 2011."
)
_DOUBAN_TERMS = "Douban: terms not stated; its authors ask to cite their papers; research use only."
_DOUBAN_CITATION = (
    "F. Zhu, Y. Wang, C. Chen, G. Liu and X. Zheng. A Graphical and Attentional Framework for "
    "Dual-Target Cross-Domain Recommendation. IJCAI 2020."
)
_DOUBAN_BOOK_FILES = ("douban/interactions_book.csv.gz", "douban/ratings_book.dat")
_GA_DTCDR = "https://raw.githubusercontent.com/fengzhu1/GA-DTCDR/b9f22b3cbdc78efa3d41e1f3ea60a2c14c9be13f/Data"
_DOUBAN_BOOK_REMOTES = (Download(f"{_GA_DTCDR}/douban_book/ratings.dat", members={"": "douban/ratings_book.dat"}),)
_DOUBAN_MUSIC_REMOTES = (Download(f"{_GA_DTCDR}/douban_music/ratings.dat", members={"": "douban/ratings_music.dat"}),)
_AMAZON_TERMS = "Amazon reviews: terms of the data not stated; research use only."
_CDRIB_CITATION = (
    "J. Cao, J. Sheng, X. Cong, T. Liu and B. Wang. Cross-Domain Recommendation to Cold-Start Users via "
    "Variational Information Bottleneck. ICDE 2022."
)
_LASTFM_URL = "https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip"
_LASTFM_SHA256 = "6738f48195667ff03caaab4d32ca9a3133d8cc026b7c3cdaf6ce1010e913c59c"
_ML_100K_HASH = "19975ff4986eac30eba6ec97f56073e67f27d4654ca81a2618ac976c855bd158"
_ML_1M_HASH = "26d1c5d2ff7a429f2f19299a9c9d1db332e437a4b835e9778399872317749f5e"
_LASTFM_TAGS_HASH = "22ceced928598a4931912236f4ce2badf79882e1004d7eb0399ab55809c54589"
_LASTFM_LISTENS_HASH = "3fd98bd64e2353da6166eab429025fa6208a39eb486f70031937a1ef9e76ec40"
_FILMTRUST_HASH = "1b002d8182dfb5c0d010871dc3c43f88579924c3965d2d6149cf40cb8a660541"
_DOUBAN_BOOK_HASH = "6a2f0b08b433db835f9964d43c3ffdbee05a8d166ccbd5974d1e7799af734ab7"
_AMAZON_VIDEO_HASH = "ca841f4d8b4f43338efc7a88dd9e97c2187fde92a2d08b968b969f828610aad8"

_ENTRIES = (
    DatasetEntry(
        name="ml-100k",
        title="MovieLens 100K",
        copies=(
            Copy("ml-100k/interactions.csv.gz", "real", _ML_100K_HASH),
            Copy("ml-100k/ml-100k.inter", "real", _ML_100K_HASH),
            Copy("ml-100k/u.data", "real", _ML_100K_HASH),
        ),
        users=943,
        items=1_682,
        interactions=100_000,
        terms=_MOVIELENS_TERMS,
        citation=_MOVIELENS_CITATION,
        remotes=(
            Wheel(
                "recbole==1.2.1",
                sha256="9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
                members={
                    "recbole/dataset_example/ml-100k/ml-100k.item": "ml-100k/ml-100k.item",
                    "recbole/dataset_example/ml-100k/ml-100k.inter": "ml-100k/ml-100k.inter",
                },
            ),
            Download(
                "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
                members={"ml-100k/u.item": "ml-100k/u.item", "ml-100k/u.data": "ml-100k/u.data"},
                sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
            ),
        ),
        titles=("ml-100k/ml-100k.item", "ml-100k/u.item"),
    ),
    DatasetEntry(
        name="ml-1m",
        title="MovieLens 1M",
        copies=(
            Copy(
                "ml-1m/interactions.csv.gz",
                "order",
                _ML_1M_HASH,
            ),
            Copy("ml-1m/ratings.dat", "real", format="movielens"),
        ),
        users=6_040,
        items=3_706,
        interactions=1_000_209,
        terms=_MOVIELENS_TERMS,
        citation=_MOVIELENS_CITATION,
        remotes=(
            Download(
                "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
                members={"ml-1m/movies.dat": "ml-1m/movies.dat", "ml-1m/ratings.dat": "ml-1m/ratings.dat"},
                sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
            ),
        ),
        titles=("ml-1m/movies.dat",),
        note="interactions.csv.gz has each user's order and no ratings, the publisher's ratings.dat has both",
    ),
    DatasetEntry(
        name="filmtrust",
        title="FilmTrust (CoFedRec's file)",
        copies=(
            Copy("filmtrust/interactions.csv.gz", "none", _FILMTRUST_HASH),
            Copy("filmtrust/ratings.dat", "none", _FILMTRUST_HASH),
        ),
        users=1_227,
        items=2_059,
        interactions=34_888,
        terms="FilmTrust: none stated where we found it; ask its authors before using it outside research.",
        citation=(
            "G. Guo, J. Zhang and N. Yorke-Smith. A Novel Bayesian Similarity Measure for Recommender "
            "Systems. IJCAI 2013."
        ),
        remotes=(
            Download(
                "https://raw.githubusercontent.com/Xinrui17/CoFedRec/"
                "c7474a1563fa3ff463da88625a46d3035d29ea54/data/filmtrust/ratings.dat",
                members={"": "filmtrust/ratings.dat"},
            ),
        ),
        note="3 user-item pairs occur twice and are kept; popularity alone nearly saturates it",
    ),
    DatasetEntry(
        name="lastfm-2k",
        title="Last.fm 2K, tags",
        copies=(
            Copy(
                "lastfm-2k-tags/interactions.csv.gz",
                "real",
                _LASTFM_TAGS_HASH,
            ),
            Copy("lastfm-2k-tags/user_taggedartists-timestamps.dat", "real", format="lastfm"),
        ),
        users=1_600,
        items=12_454,
        interactions=185_650,
        min_interactions=5,
        terms=_LASTFM_TERMS,
        citation=_LASTFM_CITATION,
        remotes=(
            Download(
                _LASTFM_URL,
                members={
                    "artists.dat": "lastfm-2k-tags/artists.dat",
                    "user_taggedartists-timestamps.dat": "lastfm-2k-tags/user_taggedartists-timestamps.dat",
                },
                sha256=_LASTFM_SHA256,
            ),
        ),
        titles=("lastfm-2k-tags/artists.dat", "lastfm-2k-listens/artists.dat"),
        note="a row is a tag assignment; 70,508 pairs are distinct; not comparable with lastfm-2k-listens",
    ),
    DatasetEntry(
        name="lastfm-2k-listens",
        title="Last.fm 2K, listens",
        copies=(
            Copy(
                "lastfm-2k-listens/interactions.csv.gz",
                "none",
                _LASTFM_LISTENS_HASH,
            ),
            Copy("lastfm-2k-listens/user_artists.dat", "none", format="lastfm"),
        ),
        users=1_874,
        items=17_612,
        interactions=92_780,
        min_interactions=10,
        pseudo_time="item-order",
        terms=_LASTFM_TERMS,
        citation=_LASTFM_CITATION,
        remotes=(
            Download(
                _LASTFM_URL,
                members={
                    "artists.dat": "lastfm-2k-listens/artists.dat",
                    "user_artists.dat": "lastfm-2k-listens/user_artists.dat",
                },
                sha256=_LASTFM_SHA256,
            ),
        ),
        titles=("lastfm-2k-listens/artists.dat", "lastfm-2k-tags/artists.dat"),
        note="ratings are play counts; rows are in the order of artist ids",
    ),
    DatasetEntry(
        name="douban-book",
        title="Douban Book (GA-DTCDR)",
        copies=tuple(Copy(file, "none", _DOUBAN_BOOK_HASH) for file in _DOUBAN_BOOK_FILES),
        users=1_696,
        items=6_777,
        interactions=95_107,
        min_interactions=5,
        terms=_DOUBAN_TERMS,
        citation=_DOUBAN_CITATION,
        remotes=_DOUBAN_BOOK_REMOTES,
    ),
    DatasetEntry(
        name="amazon-video",
        title="Amazon Instant Video (PFedRec's file)",
        copies=(
            Copy("amazon-video/interactions.csv.gz", "real", _AMAZON_VIDEO_HASH),
            Copy("amazon-video/ratings.dat", "real", _AMAZON_VIDEO_HASH),
        ),
        users=8_072,
        items=11_830,
        interactions=63_836,
        terms=_AMAZON_TERMS,
        citation=(
            "R. He and J. McAuley. Ups and Downs: Modeling the Visual Evolution of Fashion Trends with "
            "One-Class Collaborative Filtering. WWW 2016."
        ),
        remotes=(
            Download(
                "https://raw.githubusercontent.com/Zhangcx19/IJCAI-23-PFedRec/HEAD/data/amazon/ratings.dat",
                members={"": "amazon-video/ratings.dat"},
            ),
        ),
    ),
    DatasetEntry(
        name="qb-article",
        title="Tenrec QB-article",
        copies=(Copy("qb-article/QB-article.csv", "none", format="tenrec"),),
        users=11_368,
        items=6_538,
        interactions=266_356,
        min_interactions=10,
        pseudo_time="item-order",
        terms=(
            "Tenrec: non-commercial research, licence to be accepted on the publisher's page "
            "(https://static.qblv.qq.com/qblv/h5/algo-frontend/tenrec_dataset.html)."
        ),
        citation=(
            "G. Yuan et al. Tenrec: A Large-scale Multipurpose Benchmark Dataset for Recommender Systems. "
            "NeurIPS 2022 (Datasets and Benchmarks)."
        ),
        counts_checked=False,
        note="rows with click > 0; the published counts come from a loader that loses the first row",
    ),
)

REGISTRY: dict[str, DatasetEntry] = {entry.name: entry for entry in _ENTRIES}
"""Every dataset with a fixed content, by name. `synthetic` is made, not found."""


class _Content(NamedTuple):
    """What a file must hold."""

    users: int
    items: int
    interactions: int
    content_hash: str
    folder: str
    file: str = "new_reindex.txt"

    @property
    def origin(self) -> str:
        return f"dataset/{self.folder}/{self.file} of the repository cjx96/CDRIB on GitHub"


def _amazon_pair(note: str = "", **domains: _Content) -> DomainsEntry:
    """Two categories of Amazon reviews, as CDRIB prepared them."""
    pair = "-".join(domains)
    files = {name: (f"amazon-cdrib-{pair}/interactions_{name}.csv.gz",) for name in domains}
    return DomainsEntry(
        name=f"amazon-{pair}",
        title=f"Amazon {' and '.join(name.title() for name in domains)} (CDRIB)",
        domains={
            name: DomainFile(files[name], *content[:4], origin=content.origin) for name, content in domains.items()
        },
        terms=_AMAZON_TERMS,
        citation=_CDRIB_CITATION,
        note=f"whole domains, no filter{note}",
    )


_DOMAINS_ENTRIES = (
    DomainsEntry(
        name="douban",
        title="Douban Book and Music (GA-DTCDR)",
        domains={
            "book": DomainFile(
                _DOUBAN_BOOK_FILES,
                users=882,
                items=3_505,
                interactions=37_878,
                content_hash="519beb0262195ff1b20c63154623cec2591752128147740655ccf0ce993c9498",
                remotes=_DOUBAN_BOOK_REMOTES,
            ),
            "music": DomainFile(
                ("douban/interactions_music.csv.gz", "douban/ratings_music.dat"),
                users=882,
                items=3_868,
                interactions=38_756,
                content_hash="d0625ddda548905c0a545eb2d5ed3d3f599f580dc73135f8d95554cff5233ca8",
                remotes=_DOUBAN_MUSIC_REMOTES,
            ),
        },
        optional={"movie": "douban/interactions_movie.csv.gz"},
        min_rating=4,
        core=(5, 5),
        terms=_DOUBAN_TERMS,
        citation=_DOUBAN_CITATION,
        note=(
            "ratings of 4 and more, users with 5 in every domain, items with 5 (D-3); FPPDM prints counts that cannot "
            "hold; where the movie domain is supplied it is used as well, and fewer users are left"
        ),
    ),
    _amazon_pair(
        phone=_Content(
            27_519,
            9_481,
            161_010,
            "8be64de27e8483f23b3186c3d1cd7892a3fc59d230b6596555f43129918b4956",
            "cell_electronic",
        ),
        elec=_Content(
            20_427,
            36_779,
            291_772,
            "68e2e8ca09aa87c05b695ed0f638cecf65e37e663c1f97b56559bdc06316b6e0",
            "electronic_cell",
            "common_new_reindex.txt",
        ),
        note="; elec holds the users that phone knows and nobody else",
    ),
    _amazon_pair(
        cloth=_Content(
            41_829, 17_943, 194_121, "4dbf149e5ad3eebf8110045c4701a34b3ff52cbf51fd843104d2daf63d54b164", "cloth_sport"
        ),
        sport=_Content(
            27_328, 12_655, 170_426, "586a2b329707b72badd3e392b36f1bf1b6a22ad1635e1c384a08a4971b5f65e1", "sport_cloth"
        ),
    ),
    _amazon_pair(
        game=_Content(
            25_025, 12_319, 157_721, "aa3f4bf574ce6a466e6f30516143349600a6a1fd8b3479bf532797fe7f8b0f96", "game_video"
        ),
        video=_Content(
            19_457, 8_751, 158_984, "dd590539e8c8f543b182ba5fa622ecfdb452e631ca1935dc6048c6f485abba0d", "video_game"
        ),
    ),
)

DOMAINS: dict[str, DomainsEntry] = {entry.name: entry for entry in _DOMAINS_ENTRIES}
"""Every dataset of several domains with a fixed content, by name. `synthetic:domains=3` is made, not found."""
