"""Renders templates as Transformers does and writes what came out.

Usage: make_renderings.py [--templates DIR] [--out FILE], with transformers 5.24.0 and Jinja2 3.1.6
(tests/golden/parity/requirements.txt). Without arguments it makes renderings.json from the
templates beside this script.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import time

os.environ["TZ"] = "UTC"
time.tzset()

import jinja2
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent
NOW = 1750000000  # What strftime_now() shows.
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a town <now> & \"here\"",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string", "enum": ["Zürich", "Rome"]},
                           "days": {"type": "integer", "default": 1}},
            "required": ["town"],
        },
    },
}


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def call(identifier, arguments):
    return {"id": identifier, "type": "function",
            "function": {"name": "get_weather", "arguments": arguments}}


CONVERSATIONS = {
    "one_turn": [message("user", "Hello there")],
    "with_system": [message("system", " Be kind. "), message("user", "Hi"), message("assistant", "Hello!")],
    "several_turns": [message("user", "2+2?"), message("assistant", "4"), message("user", "3+3?"),
                      message("assistant", " 6 \n")],
    "tools": [message("system", "Use tools."), message("user", "Weather in Zürich?"),
              message("assistant", "", tool_calls=[call("abc123def", {"town": "Zürich", "days": 2})]),
              message("tool", "{\"degrees\": 21.50}", tool_call_id="abc123def", name="get_weather"),
              message("assistant", "21.5 degrees.")],
    "null_content": [message("user", "Weather?"),
                     message("assistant", None, tool_calls=[call("id0000001", {"x": 1e-7, "y": [1.0, None, True]}),
                                                            call("id0000002", {})]),
                     message("tool", "cold"), message("tool", "warm"), message("assistant", "Mixed.")],
    "reasoning": [message("user", "Think."), message("assistant", "<think>\nfirst\n</think>\n\nA"),
                  message("user", "Again."), message("assistant", "<think>\nsecond\n</think>\n\nB")],
    "reasoning_field": [message("user", "Think."),
                        message("assistant", "C", reasoning_content="\nbecause\n")],
    "odd_text": [message("user", "tab\there 'single' \"double\" <b>&amp;</b> {{ x }} {% raw %}"),
                 message("assistant", "naïve 😀 \u2028 \u00a0end\\n\r\nnext\u001c\u0085")],
    "empty_text": [message("user", ""), message("assistant", "")],
    "wrong_order": [message("assistant", "I begin"), message("user", "why?"), message("user", "well?")],
    "parts": [message("user", [{"type": "image"}, {"type": "text", "text": " What is this? "}]),
              message("assistant", [{"type": "text", "text": "A cat"}])],
    "unknown_role": [message("user", "a"), message("critic", "b")],
}
WITH_TOOLS = {"tools", "null_content"}


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, tz)


def byte_spans(text, spans):
    return [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in spans]


def render(source, messages, tools, add_generation_prompt):
    has_generation = re.search(r"{%-?\s*generation\s*-?%}", source) is not None
    try:
        texts, spans = chat_template_utils.render_jinja_template(
            conversations=[messages], tools=tools, chat_template=source,
            return_assistant_tokens_mask=has_generation,
            add_generation_prompt=add_generation_prompt, **SPECIAL_TOKENS)
    except jinja2.exceptions.TemplateError as error:
        return {"error": str(error)}
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        return {"error": type(error).__name__}
    spans = byte_spans(texts[0], spans[0]) if has_generation else []
    return {"text": texts[0], "spans": spans}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", type=pathlib.Path, default=HERE / "templates")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "renderings.json")
    options = parser.parse_args()
    chat_template_utils.datetime = FixedTime
    golden = {"now": NOW, "special_tokens": SPECIAL_TOKENS, "templates": {}, "conversations": {},
              "renderings": []}
    for name, messages in CONVERSATIONS.items():
        golden["conversations"][name] = {"messages": messages,
                                         "tools": [WEATHER] if name in WITH_TOOLS else None}
    for path in sorted(options.templates.glob("*.jinja")):
        source = path.read_text()
        golden["templates"][path.stem] = source
        for name, conversation in golden["conversations"].items():
            for add_generation_prompt in (False, True):
                golden["renderings"].append({
                    "template": path.stem, "conversation": name,
                    "add_generation_prompt": add_generation_prompt,
                    **render(source, conversation["messages"], conversation["tools"],
                             add_generation_prompt)})
    options.out.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")


main()
