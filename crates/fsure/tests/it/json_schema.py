"""Says which kind of line each line of standard input is, by a schema that is a choice of kinds.

The answer to each line is a line, too: {"kind": NAME}, or {"wrong": WHY} for a line that is of
no kind or of several.
"""

import json
import sys

from jsonschema import Draft202012Validator


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    kinds = {}
    for choice in schema["oneOf"]:
        name = choice["$ref"].removeprefix("#/$defs/")
        fields = schema["$defs"][name]["properties"]
        of_type = kinds.setdefault(fields.get("type", {}).get("const"), {})
        of_type[name] = Draft202012Validator({**choice, "$defs": schema["$defs"]})
    for text in sys.stdin:
        print(json.dumps(answer(kinds, json.loads(text))), flush=True)


def answer(kinds, line):
    of_type = kinds.get(line.get("type"), {})
    faults = {name: list(kind.iter_errors(line)) for name, kind in of_type.items()}
    fitting = [name for name, errors in faults.items() if not errors]
    if len(fitting) == 1:
        return {"kind": fitting[0]}
    if fitting:
        return {"wrong": f"it is of several kinds: {', '.join(fitting)}"}
    if not faults:
        return {"wrong": "no kind of line has this type"}
    nearest = min(faults, key=lambda name: distance(faults[name]))
    errors = (f"{error.json_path}: {error.message}" for error in faults[nearest])
    return {"wrong": f"it is no {nearest}: {'; '.join(errors)}"}


def distance(errors):
    return any(error.json_path == "$.command" for error in errors), len(errors)


main()
