"""Conversations that chat templates are tried on, and the renderer they are held against.

Needs transformers 5.24.0 and jinja2 3.1.6 (test tools, never dependencies).
"""
import json

from transformers.utils.chat_template_utils import _compile_jinja_template

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a \"place\" <now> & 'then'.",
                                      "parameters": {"type": "object", "properties": {
                                          "location": {"type": "string", "description": "Größe 数据"},
                                          "days": {"type": ["integer", "null"], "default": 1.5},
                                          "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                                          "tags": {"type": "array", "items": {"type": "string"}}},
                                          "required": ["location"]}}},
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def calls(*pairs):
    return [{"id": f"call_{i:05d}", "type": "function", "function": {"name": n, "arguments": a}}
            for i, (n, a) in enumerate(pairs)]


def tool(text, i=0, name="get_weather"):
    return {"role": "tool", "tool_call_id": f"call_{i:05d}", "name": name, "content": text}


ROUND = [user("Weather in Oslo?"),
         assistant("", tool_calls=calls(("get_weather", {"location": "Oslo", "days": 2, "tags": ["a", "b"]}))),
         tool('{"temperature": -3.5}')]
CASES = {
    "one": {"messages": [user("Hello!")]},
    "system": {"messages": [system("Be brief."), user("Hi ")]},
    "turns": {"messages": [user("a\n"), assistant(" b "), user("c"), assistant("d"), user("e\n\n")]},
    "no_prompt": {"messages": [user("a"), assistant("b")], "add_generation_prompt": False},
    "unicode": {"messages": [system("數據 🙂"), user("\u00a0ÄÖ ß\u3000 e\u0301 \u2028x"), assistant("<b>&amp;</b>"), user("'\"\\")]},
    "tools": {"messages": [system("Be brief."), user("Weather?")], "tools": TOOLS},
    "tools_no_system": {"messages": [user("Weather?")], "tools": TOOLS},
    "round": {"messages": ROUND, "tools": TOOLS},
    "round_answered": {"messages": [system("S")] + ROUND + [assistant("Cold."), user("And tomorrow?")], "tools": TOOLS},
    "parallel": {"messages": [user("both"), assistant("Let me see.", tool_calls=calls(("get_weather", {"location": "A"}), ("noop", {}))),
                              tool("1"), tool("2", 1, "noop"), assistant("done"), user("ok")], "tools": TOOLS},
    "none_content": {"messages": [user("x"), assistant(None, tool_calls=calls(("noop", {}))), tool("y", 0, "noop")], "tools": TOOLS},
    "reasoning": {"messages": [user("q"), assistant("a", reasoning_content="because\nso"), user("q2")]},
    "think_in_content": {"messages": [user("q"), assistant("<think>\nhm\n</think>\n\nanswer"), user("q2"), assistant("<think>x</think>y"), user("z")]},
    "thinking_off": {"messages": [user("q")], "enable_thinking": False, "thinking": False},
    "thinking_on": {"messages": [system("S"), user("q")], "enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    "two_users": {"messages": [user("a"), user("b")]},
    "empty": {"messages": [user("")]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": " two "}]}]},
    "control": {"messages": [system("<|im_end|>"), user("<|im_start|>x</think><|eot_id|>"), assistant("<|im_end|></think>a"), user("[INST]<end_of_turn>")], "tools": TOOLS},
}


def variables(case, bos="<s>", eos="</s>"):
    out = {"messages": case["messages"], "tools": case.get("tools"), "documents": None,
           "add_generation_prompt": case.get("add_generation_prompt", True), "bos_token": bos, "eos_token": eos}
    out.update({k: v for k, v in case.items() if k not in out})
    return json.loads(json.dumps(out))


def rendered(source, case):
    """The prompt, or None where the template refuses."""
    try:
        return _compile_jinja_template(source).render(**variables(case))
    except Exception as error:  # noqa: BLE001 - templates raise anything
        return None, f"{type(error).__name__}: {error}"
