"""The door to pydantic (version 2): models, RootModel, and pydantic's own types.

Rule: pydantic is never imported first: a class that is a model means that it is there already. A model is what its
fields, its extra members and its set of given fields are; ``model_dump(exclude_unset=True)`` shows that set to a model
of language, so it is kept. Reading asks pydantic's validators, which may refuse; what they would change stays as
recorded.
"""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from toolcassette.contracts.hints import class_of
from toolcassette.contracts.names import readable
from toolcassette.contracts.nodes import AnyNode, Node, Reading, UnknownNode
from toolcassette.contracts.objects import ABSENT, Field, FieldsNode, as_members, as_object
from toolcassette.contracts.unfit import Unfit
from toolcassette.errors import FormatError
from toolcassette.format import TAG, TYPES, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.contracts.compiler import Compiler
    from toolcassette.format import Tree

__all__ = ["build", "hidden", "parts"]

_FIELDS: Final = "fields"  # the tag of a model some of whose fields were not given


def build(annotation: object, compiler: Compiler) -> Node | None:
    """The node of a model, a RootModel or a type of pydantic's own; None for anything else."""
    cls: Any = class_of(annotation)
    if cls is None or "pydantic" not in sys.modules:
        return None
    if _is_model(cls):
        return _model(cls, annotation, compiler)
    if cls.__module__.partition(".")[0] in ("pydantic", "pydantic_core"):
        return _own_type(annotation, compiler)
    return None


def parts(value: object) -> dict[str, object] | None:
    """The fields and extra members of a model, the text of a URL; None for anything else."""
    cls: Any = type(value)
    if "pydantic" not in sys.modules:
        return None
    if _is_model(cls):
        own = value.__dict__
        found = {name: own[name] for name in cls.model_fields if name in own}
        return found | (getattr(value, "__pydantic_extra__", None) or {})
    return {"url": str(value)} if _is_url(cls) else None


def hidden(value: object) -> dict[str, object]:
    """What else makes two models the same: private attributes, and which fields were given."""
    if "pydantic" not in sys.modules or not _is_model(type(value)):
        return {}
    model: Any = value
    private = model.__pydantic_private__ or {}
    return {**private, "model_fields_set": set(model.model_fields_set)}


def _is_model(cls: type) -> bool:
    import pydantic

    return issubclass(cls, pydantic.BaseModel)


def _is_url(cls: type) -> bool:
    return cls.__module__ in ("pydantic.networks", "pydantic_core._pydantic_core") and cls.__name__.endswith(
        ("Url", "Dsn")
    )


def _model(cls: Any, annotation: object, compiler: Compiler) -> Node:
    import pydantic

    if not cls.__pydantic_complete__:
        cls.model_rebuild(raise_errors=False)
        if not cls.__pydantic_complete__:  # it speaks of a class that does not exist yet
            return UnknownNode(readable(annotation))
    is_root = issubclass(cls, pydantic.RootModel)
    node = _RootNode(cls, annotation) if is_root else _ModelNode(cls, annotation, AnyNode(compiler.extensions))
    compiler.remember(annotation, node)
    infos: dict[str, Any] = cls.model_fields
    nodes = compiler.fields(annotation, [info.annotation for info in infos.values()])
    for (name, info), part in zip(infos.items(), nodes, strict=True):
        node.fields[name] = Field(name, name, part, bool(info.is_required()))
    return node


def _names_enum(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return True
    return any(_names_enum(part) for part in get_args(hint))


def _validator(cls: Any) -> Callable[[dict[str, object]], object]:
    """Validates values by field name, whatever aliases there are."""
    import pydantic

    if "by_name" in pydantic.BaseModel.model_validate.__code__.co_varnames:  # pydantic 2.11
        return lambda values: cls.model_validate(values, by_alias=False, by_name=True)
    aliases = {name: _alias(name, info) for name, info in cls.model_fields.items()}
    return lambda values: cls.model_validate({aliases.get(name, name): value for name, value in values.items()})


def _alias(name: str, info: Any) -> str:
    alias = info.validation_alias
    choices = [alias, *getattr(alias, "choices", ())]
    return next((choice for choice in choices if isinstance(choice, str)), name)


def _validated(validate: Callable[[Any], object], value: object, node: FieldsNode, cls: type) -> Any:
    """What pydantic makes of a value. Raises ``Unfit`` with the place and the kind of its first complaint."""
    import pydantic

    try:
        made = validate(value)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _misfit(first["type"], first["loc"], cls) from None
    except Exception:  # noqa: BLE001 - a user's validator; its text may hold the value
        raise Unfit(node.wanted) from None
    if type(made) is not cls:
        raise Unfit(node.wanted)
    return made


def _misfit(kind: str, location: tuple[int | str, ...], cls: Any) -> Unfit:
    name = str(location[0]) if location else ""
    info = cls.model_fields.get(name)
    if info is None:
        return Unfit(f"{readable(cls)} ({kind})")
    inner: list[int | str] = [step for step in location[1:2] if isinstance(step, int)]
    return Unfit(f"{readable(info.annotation)} ({kind})", [*inner, name])


class _ModelNode(FieldsNode):
    """A model, by field name. Where some fields were not given, a tag tells which."""

    rank = 0

    def __init__(self, cls: Any, annotation: object, extra: AnyNode) -> None:
        super().__init__(readable(annotation))
        self._cls = cls
        self._extra = extra
        self._takes_extra = cls.model_config.get("extra") == "allow"
        self._validate = _validator(cls)
        by_value = cls.model_config.get("use_enum_values", False)
        # Given fields then hold something else than their hints say, and pydantic alone can judge it.
        self._given = {
            name: extra for name, info in cls.model_fields.items() if by_value and _names_enum(info.annotation)
        }

    def takes(self, value: object) -> bool:
        return type(value) is self._cls

    def write(self, value: Any) -> Tree:
        members: dict[str, Tree] = {}
        for field in self.fields.values():
            part = value.__dict__.get(field.name, ABSENT)
            if part is ABSENT:
                raise Refused(type(value).__qualname__, "has no value for this field").under(field.key)
            node = self._given.get(field.name) if field.name in value.model_fields_set else None
            members[field.key] = (node or field.node).encode_under(part, field.key)
        for name, part in (value.__pydantic_extra__ or {}).items():
            members[name] = self._extra.encode_under(part, name)
        unset = sorted(self.fields.keys() - value.model_fields_set)
        tree = as_object(members)
        return {TAG: _FIELDS, "unset": cast("Tree", unset), "v": tree} if unset else tree

    def decode(self, tree: Tree, reading: Reading) -> object:
        unset: list[str] = []
        if type(tree) is dict and tree.get(TAG) == _FIELDS:
            unset, tree = _unset(tree)
        members = as_members(tree, self.wanted)
        extra: dict[str, object] = {}
        if self._takes_extra:
            strangers = members.keys() - self.fields.keys()
            extra = {
                key: self._extra.decode_under(part, reading, key) for key, part in members.items() if key in strangers
            }
        members = {key: part for key, part in members.items() if key not in extra}
        by_value = {name: node for name, node in self._given.items() if name not in unset}
        values = self.read(members, reading, by_value)
        given = {name: value for name, value in values.items() if name not in unset} | extra
        made = _validated(self._validate, given, self, self._cls)
        made.__dict__.update(values)
        if extra:
            made.__pydantic_extra__.update(extra)
        object.__setattr__(made, "__pydantic_fields_set__", set(given))
        return made


def _unset(tree: dict[str, Tree]) -> tuple[list[str], Tree]:
    names = tree.get("unset")
    if list(tree) != [TAG, "unset", "v"] or type(names) is not list or not names:
        raise FormatError("bulk")
    found = [name for name in names if type(name) is str]
    if len(found) < len(names) or found != sorted(set(found)):
        raise FormatError("bulk")
    return found, tree["v"]


class _RootNode(FieldsNode):
    """A RootModel: what its root is."""

    rank = 0

    def __init__(self, cls: Any, annotation: object) -> None:
        super().__init__(readable(annotation))
        self._cls = cls

    def takes(self, value: object) -> bool:
        return type(value) is self._cls

    def write(self, value: Any) -> Tree:
        return self.fields["root"].node.encode(value.root)

    def decode(self, tree: Tree, reading: Reading) -> object:
        value = self.fields["root"].node.decode(tree, reading)
        made = _validated(self._cls.model_validate, value, self, self._cls)
        made.__dict__["root"] = value
        return made


def _own_type(annotation: object, compiler: Compiler) -> Node:
    import pydantic

    try:
        adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(cast("type[object]", annotation))
        validate = adapter.validate_python
    except Exception:  # noqa: BLE001 - a type may need a package that is not installed
        return UnknownNode(readable(annotation))
    return _OwnTypeNode(annotation, validate, AnyNode(compiler.extensions))


class _OwnTypeNode(Node):
    """A type of pydantic's own (``HttpUrl``, ``EmailStr``, ``AwareDatetime``): a builtin value or a URL."""

    rank = 0

    def __init__(self, annotation: object, validate: Callable[[object], object], inner: AnyNode) -> None:
        self.wanted = readable(annotation)
        self._validate = validate
        self._inner = inner

    def takes(self, value: object) -> bool:
        return type(value) in TYPES or type(value).__module__.startswith("pydantic")

    def write(self, value: object) -> Tree:
        return self._inner.write(str(value) if _is_url(type(value)) else value)

    def decode(self, tree: Tree, reading: Reading) -> object:
        value = self._inner.decode(tree, reading)
        try:
            made = self._validate(value)
        except Exception:  # noqa: BLE001 - its text may hold the value
            raise Unfit(self.wanted) from None
        if _is_url(type(made)):
            return made
        if type(made) is not type(value):
            raise Unfit(self.wanted)
        return value
