"""Everything that determines a run, resolved before it starts and written to its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from confed.config import MethodConfig
from confed.data.reading import Reading
from confed.data.recognition import in_catalogue, needs_filter
from confed.errors import ConfedError, unknown_name
from confed.methods.base import federated
from confed.methods.registry import all_methods, method_named
from confed.protocol import Protocol, protocol_named
from confed.seals import digest_of
from confed.toml import read_toml
from confed.visible import quoted

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class Settings(BaseModel):
    """A run. `method_options` holds every hyper-parameter, defaults included, so that a folder explains itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    method: str
    dataset: str
    known: str | None = None
    """The dataset of the catalogue that the data is by its content: its defaults and its filter count."""
    content_hash: str | None = None
    """Of the data as it was loaded; a run is not continued or served with other data."""
    source: str | None = None
    """Data in files: their whole paths when the run began, whatever `dataset` calls them."""
    reading: Reading = Field(default_factory=Reading, exclude_if=lambda said: not said)
    """Data in files: what the user said about how to read them; nothing is not written down."""
    protocol: Protocol
    method_options: dict[str, Any]
    facts: dict[str, float] | None = None
    """Of the training data, where options that nobody set follow from them."""
    fitted: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Switches of the protocol that nobody set: they follow from data that is too small for what is usual."""
    seed: int = 0
    rounds: int = Field(ge=1)
    eval_every: int = Field(default=1, ge=1)
    eval_users: int | None = Field(default=None, ge=1, exclude_if=lambda number: number is None)
    """Rank a sample of so many users in every evaluation, and everybody in the end; by default everybody always."""
    all_views: bool = Field(default=False, exclude_if=lambda asked: not asked)
    """Rank under every view of the method in every evaluation; by default under the one that it is judged by."""
    patience: int | None = Field(default=None, ge=1)
    """Stop after so many evaluations without a better value of the selecting metric."""
    min_interactions: int | None = Field(default=None, ge=1)
    """Drop users with fewer interactions, on top of the dataset's own filter."""
    engine: Literal["local", "processes", "ray"] = "local"
    """Where clients are: in this process, in others of this machine, or in actors of Ray. Does not change results."""
    workers: int | None = Field(default=None, ge=1)
    """Processes or actors that hold clients; by default one for each core."""
    address: str | None = None
    """Of a running Ray; by default one is started here."""
    chunk: int | None = Field(default=None, ge=1)
    """Clients trained at once; by default as many as keep a batch in cache. Does not change results."""
    dtype: Literal["float32", "float64"] = "float32"
    checkpoint_seconds: float = Field(default=120.0, ge=0)

    @field_validator("known")
    @classmethod
    def _in_catalogue(cls, name: str | None) -> str | None:
        """A file says "" where the data is none of the catalogue."""
        if name and not in_catalogue(name):
            raise ValueError("the catalogue has no such dataset, see `confed data list`")
        return name or None

    @property
    def run_id(self) -> str:
        """A hash of all that the results of a round depend on: the same for a run that goes on elsewhere or further."""
        told = self.model_dump(mode="json", exclude=_NO_MATTER) | {"time": self.reading.get("time")}
        return digest_of(json.dumps(told, sort_keys=True).encode())

    def without_source(self) -> Settings:
        """For those who need not know where the data lies."""
        return self.model_copy(update={"source": None})

    def without_whereabouts(self) -> Settings:
        """For those who need not know what it looks like, either."""
        reading: Reading = {"time": self.reading["time"]} if "time" in self.reading else {}
        return self.without_source().model_copy(update={"reading": reading, "facts": None})

    def config(self) -> MethodConfig:
        return validated(method_named(self.method).config_class, self.method_options, f"method {self.method}")

    def to_toml(self) -> str:
        return tomli_w.dumps(_set(self.model_dump(mode="json")) | {"known": self.known or ""})

    @classmethod
    def from_toml(cls, path: Path) -> Settings:
        """Before `known` was written down, the name by which data was called decided."""
        told = read_toml(path)
        by_name = {"known": told["dataset"]} if in_catalogue(told.get("dataset")) else {}
        return _with_options_unset(validated(cls, by_name | told, str(path)))


_NO_MATTER = {"dataset", "source", "reading", "facts", "fitted", "rounds", "patience"}
_NO_MATTER |= {"engine", "workers", "address", "chunk", "checkpoint_seconds"}
"""Settings that change no result of a round: what the data is called, how it was read (its content tells, but for the
order of rows), what options followed from; how far and where it is trained.
"""


def _set(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set, in every section: TOML has no word for the others."""
    return {
        name: _set(value) if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if value is not None
    }


def _with_options_unset(settings: Settings) -> Settings:
    """Options whose default is not to be set are left out of a file."""
    fields = method_named(settings.method).config_class.model_fields
    unset = {name: None for name, field in fields.items() if field.default is None}
    return settings.model_copy(update={"method_options": unset | settings.method_options})


def resolve(
    method: str,
    dataset: str,
    *,
    known: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, Any] | None = None,
    **run: Any,
) -> Settings:
    """Build the settings of a run from what a user says.

    `dataset` is what the data is called; `known` is the dataset of the catalogue that it is by its content (see
    `confed.data.recognition`), and chooses the defaults. `options` are the --set pairs: hyper-parameters of the method
    or switches of the protocol, by bare name; a dot reaches into a section (`reproduction.saturating_bce`). `run` are
    fields of `Settings`; None means the default.
    """
    chosen = method_named(method)
    of_method, of_protocol = _sort_options(options or {}, method)
    config = validated_call(lambda: chosen.config(known, of_method), f"method {method}")
    base = protocol_named(protocol or "strict")
    fields: dict[str, Any] = {
        "method": method,
        "dataset": dataset,
        "known": known,
        "protocol": validated(Protocol, {**base.model_dump(), **of_protocol}, f"protocol {base.name}"),
        "method_options": config.model_dump(mode="json"),
        "rounds": chosen.rounds,
        "patience": None if run.get("rounds") else chosen.patience,  # who says how many rounds gets them
    }
    for name in set(run) - _SAID:
        if name in chosen.config_class.model_fields or name in Protocol.model_fields:
            raise ConfedError(f"{name} is an option of the method or the protocol: say options={{{name!r}: …}}")
        raise unknown_name("setting", name, _SAID)
    if run.get("chunk") and not has_devices(method):
        raise ConfedError(f"chunk does nothing here, leave it out: {method} does not train on people's devices")
    if run.get("all_views") and not has_views(method, options or {}):
        raise ConfedError(f"all_views does nothing here, leave it out: {method} can be scored under one view only")
    if run.get("all_views") and run.get("eval_users"):
        raise ConfedError(
            "all_views and eval_users: in the end everybody is ranked under one view, leave one of them out"
        )
    fields |= {name: value for name, value in run.items() if value is not None}
    return placed(validated(Settings, fields, "run"))


def settled(settings: Settings, facts: Mapping[str, float] | None) -> Settings:
    """The settings, with those options that nobody set as they follow from the facts of the training data."""
    if not facts:
        return settings
    config = method_named(settings.method).settled(settings.config(), facts)
    return settings.model_copy(update={"method_options": config.model_dump(mode="json"), "facts": dict(facts)})


def followed(settings: Settings) -> set[str]:
    """The method's options that are as they are because of the data: the defaults that there are for it, and what
    follows from its facts.
    """
    method, known = method_named(settings.method), settings.known or ""
    found = {name for name, value in method.defaults.get(known, {}).items() if settings.method_options[name] == value}
    if settings.facts:
        unset = {name: None for name, field in method.config_class.model_fields.items() if field.default is None}
        again = method.settled(settings.config().model_copy(update=unset), settings.facts)
        found |= {name for name in unset if getattr(again, name) is not None}
    return found


def placed(settings: Settings) -> Settings:
    """The settings, if the place they name fits the rest."""
    engine = settings.engine
    if engine != "local":
        federated(method_named(settings.method))
    if engine == "local" and settings.workers:
        raise ConfedError("workers does nothing with --engine local: take --engine processes or ray, or leave it out")
    if engine != "ray" and settings.address:
        raise ConfedError(f"address is that of a running Ray, and does nothing with --engine {engine}: leave it out")
    return settings


def defaults_in_words(settings: Settings) -> str:
    """What counts where the user said nothing, and why, in one line; an option that was set is not listed."""
    if settings.facts:
        found = method_named(settings.method).settled_in_words(settings.config(), settings.facts)
        return f"{_defaults_in_words(settings)}; {found}"
    return _defaults_in_words(settings)


def _defaults_in_words(settings: Settings) -> str:
    method, known = settings.method, settings.known
    if known is None:
        return f"what {method} has for any data, as this is none of the datasets that papers tuned it for"
    content = f"by its content this data is {known}"
    if settings.dataset != known and settings.content_hash and needs_filter(known, settings.content_hash):
        content += " once its filter is applied"  # nobody is dropped silently
    for_it = method_named(method).defaults.get(known)
    if not for_it:
        return f"what {method} has for any data ({content}, for which it has nothing else)"
    kept = [f"{name} = {value}" for name, value in for_it.items() if settings.method_options.get(name) == value]
    return f"what {method} has for {known} ({content}): {', '.join(kept) or 'all of it overruled by options'}"


def has_devices(method: str) -> bool:
    """Whether it trains clients by the thousand, so that there is something to take a chunk of."""
    return method_named(method).domains == "one"


def has_views(method: str, options: Mapping[str, Any]) -> bool:
    """Whether it can be scored under several views, with these options of its own and of the protocol."""
    of_method, of_protocol = _sort_options(options, method)
    chosen = method_named(method)
    config = validated_call(lambda: chosen.config(None, of_method), f"method {method}")
    return len(chosen.facts(config, of_protocol.get("view")).get("views", ())) > 1


_SAID = set(Settings.model_fields) - {"method", "dataset", "protocol", "method_options"}
_SAID -= {"known", "content_hash", "source", "reading", "facts", "fitted"}
"""Fields that a user says as they are."""


def _sort_options(options: Mapping[str, Any], method: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give each option to the method or to the protocol."""
    of_method: dict[str, Any] = {}
    of_protocol: dict[str, Any] = {}
    config_class = method_named(method).config_class
    switches = set(Protocol.model_fields) - {"name"}
    for key, value in options.items():
        head, _, rest = key.partition(".")
        if head in config_class.model_fields:
            of_method[head] = {**of_method.get(head, {}), rest: value} if rest else value
        elif key in switches:
            of_protocol[key] = value
        else:
            raise unknown_option(key, [method])
    return of_method, of_protocol


def unknown_option(key: str, methods: Sequence[str]) -> ConfedError:
    """The error for an option that none of the `methods` has: it may be a setting, or belong to others."""
    head = key.partition(".")[0]
    if head in _SAID or head == "protocol":
        return ConfedError(f"{head} is no option of methods but a setting of the run: --{head.replace('_', '-')}")
    owners = [name for name, other in all_methods()[0].items() if head in other.config_class.model_fields]
    if owners:
        return ConfedError(f"unknown option {key!r} of {' and '.join(methods)}: it belongs to {', '.join(owners)}")
    known = {name for method in methods for name in method_named(method).config_class.model_fields}
    return unknown_name("option", key, known | set(Protocol.model_fields) - {"name"})


def validated(model: type[M], fields: Mapping[str, Any], where: str) -> M:
    return validated_call(lambda: model.model_validate(dict(fields)), where)


def validated_call(build: Callable[[], T], where: str) -> T:
    """Run a pydantic construction; the first complaint becomes an error that names the option and its value.

    What several options do wrong together has no place of its own: such a message names them itself.
    """
    try:
        return build()
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        text = first["msg"].removeprefix("Value error, ")
        message = text[:1].lower() + text[1:]  # allowed values keep their case
        found = f"{name} = {quoted(first['input'])}: " if name else ""
        raise ConfedError(f"{where}: {found}{message}") from None
