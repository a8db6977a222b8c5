# The schemas of tools: from a function's hints and docstring by the rules of transformers 5.23 (`get_json_schema`), and reduced
# to verl 0.9's fields (`verl.tools.schemas`). Needs only Python 3.8 and its standard library.

import copy
import enum
import inspect
import json
import re
import typing

# True if prompts contain verl's reduced schemas: a parameter's type, description and enum only.
NARROW = False

DESCRIPTION = re.compile(r"^(.*?)[\n\s]*(Args:|Returns:|Raises:|\Z)", re.DOTALL)
ARGS = re.compile(r"\n\s*Args:\n(.*?)[\n\s]*(Returns:|Raises:|\Z)", re.DOTALL)
RETURNS = re.compile(r"\n\s*Returns:\n\s*(.*?)[\n\s]*(Raises:|\Z)", re.DOTALL)
# The indentation, name and text of an argument, up to the next name that is not indented deeper.
ARG = re.compile(r"(?:^|\n)([ \t]*)(\w+):\s*(.*?)\s*(?=\n(?!\1[ \t])[ \t]*\w+:|\Z)", re.DOTALL)
SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
PLAIN = {**SCALARS, list: "array", tuple: "array", dict: "object"}


class TypeHintParsingException(Exception):
    """A parameter without a type hint, or with one that JSON cannot express."""


class DocstringParsingException(Exception):
    """A function without a docstring, or a parameter that the docstring does not describe."""


def listed_values(values):
    """Returns the schema for one of these values."""
    types = list(dict.fromkeys(SCALARS[type(value)] for value in values))
    return {"type": types[0] if len(types) == 1 else types, "enum": values}


def is_union(origin):
    return origin is typing.Union or type(origin).__name__ == "type" and getattr(origin, "__name__", "") in ("UnionType", "Union")


def hint_schema(hint):
    """Returns the schema of a type hint."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return bare_schema(hint)
    if is_union(origin):
        kinds = [hint_schema(kind) for kind in args if kind is not type(None)]
        if len(kinds) == 1:
            schema = kinds[0]
        elif all(kind.keys() == {"type"} and isinstance(kind["type"], str) for kind in kinds):
            names = sorted({kind["type"] for kind in kinds})
            schema = {"type": names[0] if len(names) == 1 else names}
        else:
            schema = {"anyOf": kinds}
        if type(None) in args:
            schema["nullable"] = True
        return schema
    if origin is typing.Literal:
        if any(type(value) not in SCALARS for value in args):
            raise TypeHintParsingException("Literal can have text, numbers, True, False and None, not %r" % (args,))
        return listed_values(list(args))
    if origin is list:
        return {"type": "array", "items": hint_schema(args[0])} if args and args[0].__class__ is not typing.TypeVar else {"type": "array"}
    if origin is tuple:
        if len(args) == 1 or ... in args:
            raise TypeHintParsingException("%r: write list[…] instead" % (hint,))
        return {"type": "array", "prefixItems": [hint_schema(kind) for kind in args]} if args else {"type": "array"}
    if origin is dict:
        typed = len(args) == 2 and args[1].__class__ is not typing.TypeVar
        return {"type": "object", "additionalProperties": hint_schema(args[1])} if typed else {"type": "object"}
    raise TypeHintParsingException("the type hint %r cannot be expressed in JSON" % (hint,))


def bare_schema(hint):
    """Returns the schema of a hint without parts."""
    if hint is typing.Any:
        return {}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        values = [member.value for member in hint]
        if not values or any(type(value) not in SCALARS for value in values):
            raise TypeHintParsingException("the values of %s are not text, numbers, True, False and None" % hint.__name__)
        return listed_values(values)
    if not isinstance(hint, type) or hint not in PLAIN:
        raise TypeHintParsingException("the type hint %r is a class without a JSON type" % (hint,))
    return {"type": PLAIN[hint]}


def parameters_schema(function):
    """Returns the schemas of all parameters, and under `return` the schema of the result."""
    signature = inspect.signature(function)
    first = next(iter(signature.parameters), None)
    own = first if first in ("self", "cls") and signature.parameters[first].annotation is inspect.Parameter.empty else None
    required = []
    for name, parameter in signature.parameters.items():
        if name == own:
            continue
        if parameter.annotation is inspect.Parameter.empty:
            text = "the argument %s of %s has no type hint"
            raise TypeHintParsingException(text % (name, getattr(function, "__name__", "operation")))
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    properties = {}
    for name, hint in typing.get_type_hints(function).items():
        if name == "return":
            try:
                properties[name] = hint_schema(hint)
            except TypeHintParsingException:
                pass
        elif name != own:
            properties[name] = hint_schema(hint)
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def sections(docstring):
    """Splits a docstring in Google's style into the description, the text of each argument, and the text of the result."""
    description, args, returns = DESCRIPTION.search(docstring), ARGS.search(docstring), RETURNS.search(docstring)
    texts = {}
    if args:
        lines = "\n".join(line for line in args.group(1).split("\n") if line.strip())
        texts = {name: re.sub(r"\s*\n+\s*", " ", text.strip()) for _, name, text in ARG.findall(lines)}
    return description.group(1).strip() if description else None, texts, returns.group(1).strip() if returns else None


def get_json_schema(function):
    """Returns the schema of a function in OpenAI's form."""
    name, docstring = getattr(function, "__name__", "operation"), inspect.getdoc(function)
    if not docstring:
        raise DocstringParsingException("%s has no docstring" % name)
    description, texts, returns = sections(docstring.strip())
    schema = parameters_schema(function)
    result = schema["properties"].pop("return", None)
    for argument, kind in schema["properties"].items():
        if argument not in texts:
            raise DocstringParsingException("the docstring of %s does not describe the argument %s" % (name, argument))
        text = texts[argument]
        choices = re.search(r"\(choices:\s*(.*?)\)\s*$", text, flags=re.IGNORECASE)
        if choices:
            kind["enum"] = [item.strip() if isinstance(item, str) else item for item in json.loads(choices.group(1))]
            text = text[: choices.start()].strip()
        kind["description"] = text
    function_schema = {"name": name, "description": description, "parameters": schema}
    if result is not None:
        if returns is not None:
            result["description"] = returns
        function_schema["return"] = result
    return {"type": "function", "function": function_schema}


class ValidationError(ValueError):
    """Values that a model of verl rejects."""


class Model:
    """The interface of verl's pydantic models that tools use. FIELDS has for each field a check, and a default for an optional one."""

    FIELDS = {}

    def __init__(self, **values):
        fields_set = {}
        for name, (check, *default) in self.FIELDS.items():
            if name in values:
                fields_set[name] = check(values[name], "%s.%s" % (type(self).__name__, name))
            elif not default and not (name == "type" and type(self).__name__.endswith("PropertySchema") and not NARROW):
                raise ValidationError("%s has no %s" % (type(self).__name__, name))
            self.__dict__[name] = fields_set[name] if name in values else default[0]() if default else None
        self.__dict__["model_fields_set"] = set(fields_set)

    def __setattr__(self, name, value):
        self.__dict__[name] = value
        self.model_fields_set.add(name)

    def __eq__(self, other):
        return type(self) is type(other) and self.model_dump() == other.model_dump()

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % (name, getattr(self, name)) for name in self.FIELDS))

    @classmethod
    def model_validate(cls, value):
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise ValidationError("%s must be a dict, not %r" % (cls.__name__, value))
        made = cls(**value)
        made.__dict__["written"] = copy.deepcopy(value)
        return made

    def model_dump(self, exclude_unset=False, exclude_none=False, **_):
        def plain(value):
            if isinstance(value, Model):
                return value.model_dump(exclude_unset, exclude_none)
            if isinstance(value, dict):
                return {key: plain(item) for key, item in value.items()}
            return [plain(item) for item in value] if isinstance(value, list) else value

        kept = [name for name in self.FIELDS if not exclude_unset or name in self.model_fields_set]
        values = {name: plain(getattr(self, name)) for name in kept}
        return {name: value for name, value in values.items() if not exclude_none or value is not None}

    def model_dump_json(self, **options):
        return json.dumps(self.model_dump(**options), ensure_ascii=False)

    def model_copy(self, update=None, deep=False):
        made = copy.deepcopy(self) if deep else copy.copy(self)
        for name, value in (update or {}).items():
            setattr(made, name, value)
        return made


def one_of(*types):
    """Returns a check that a value has one of these types; `[type]` is a list of items of this type."""

    def check(value, place):
        for kind in types:
            if isinstance(kind, list):
                if isinstance(value, list) and all(isinstance(item, kind[0]) for item in value):
                    return value
            elif isinstance(kind, dict):
                if isinstance(value, dict):
                    return {key: kind["values"].model_validate(item) for key, item in value.items()}
            elif issubclass(kind, Model):
                return kind.model_validate(value)
            elif isinstance(value, kind):
                return value
        raise ValidationError("%s cannot be %r" % (place, value))

    return check


NOTHING = type(None)


class OpenAIFunctionPropertySchema(Model):
    FIELDS = {
        "type": [one_of(str, [str])],
        "description": [one_of(str, NOTHING), lambda: None],
        "enum": [one_of(list, NOTHING), lambda: None],
    }


class OpenAIFunctionParametersSchema(Model):
    FIELDS = {
        "type": [one_of(str)],
        "properties": [one_of({"values": OpenAIFunctionPropertySchema})],
        "required": [one_of([str]), list],
    }


class OpenAIFunctionSchema(Model):
    FIELDS = {
        "name": [one_of(str)],
        "description": [one_of(str)],
        "parameters": [
            one_of(OpenAIFunctionParametersSchema),
            lambda: OpenAIFunctionParametersSchema(type="object", properties={}, required=[]),
        ],
        "strict": [one_of(bool), lambda: False],
    }


class OpenAIFunctionToolSchema(Model):
    FIELDS = {"type": [one_of(str)], "function": [one_of(OpenAIFunctionSchema)]}


class OpenAIFunctionParsedSchema(Model):
    FIELDS = {"name": [one_of(str)], "arguments": [one_of(str)]}


class OpenAIFunctionCallSchema(Model):
    FIELDS = {"name": [one_of(str)], "arguments": [one_of(dict)]}

    @staticmethod
    def from_openai_function_parsed_schema(parsed):
        try:
            arguments = json.loads(parsed.arguments)
        except json.JSONDecodeError:
            arguments = None
        is_object = isinstance(arguments, dict)
        return OpenAIFunctionCallSchema(name=parsed.name, arguments=arguments if is_object else {}), not is_object


class OpenAIFunctionToolCall(Model):
    FIELDS = {"id": [one_of(str)], "type": [one_of(str), lambda: "function"], "function": [one_of(OpenAIFunctionCallSchema)]}


class ToolResponse(Model):
    FIELDS = {
        "text": [one_of(str, NOTHING), lambda: None],
        "image": [one_of(list, NOTHING), lambda: None],
        "video": [one_of(list, NOTHING), lambda: None],
    }

    def is_empty(self):
        return not self.text and not self.image and not self.video

    def is_text_only(self):
        return self.text and not self.image and not self.video


def schema_for_prompts(schema):
    """Returns a tool's schema for the prompt: as the user wrote it, or reduced to verl's fields."""
    if isinstance(schema, dict):
        schema = OpenAIFunctionToolSchema.model_validate(schema)
    dumped = schema.model_dump(exclude_unset=True, exclude_none=True)
    written = getattr(schema, "written", None)
    if NARROW or written is None:
        return dumped
    # A tool may have changed the schema after it was parsed.
    same = OpenAIFunctionToolSchema.model_validate(written).model_dump(exclude_unset=True, exclude_none=True) == dumped
    return written if same else dumped
