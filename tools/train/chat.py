"""The V4.1 chat encoding, as far as the training data needs it, and a strict reader of what the model writes."""
import json
import re

BOS, EOS, SYSTEM, USER, ASSISTANT = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜System｜>", "<｜User｜>",
                                     "<｜Assistant｜>")
THINK, END_THINK, DSML = "<think>", "</think>", "｜DSML｜"
EFFORT = "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
TOOLS = """## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

{schemas}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
"""


def calls_block(calls):
    invokes = []
    for c in calls:
        rows = [f'<{DSML} parameter name="{k}" string="{"true" if isinstance(v, str) else "false"}">'
                f'{v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}</{DSML} parameter>'
                for k, v in c["arguments"].items()]
        invokes.append(f'<{DSML} invoke name="{c["name"]}">\n' + "\n".join(rows) + f"\n</{DSML} invoke>")
    return f"\n\n<{DSML} calls>\n" + "\n".join(invokes) + f"\n</{DSML} calls>"


def encode(messages, thinking=False, effort=75, open_turn=False):
    """Messages {role: system|user|assistant|tool, content, tools, reasoning, calls} -> prompt text.

    Consecutive user and tool messages share one user turn. Earlier reasoning is dropped unless tools are declared.
    open_turn: the text ends behind the header of the assistant's next turn."""
    merged = []
    for m in messages:
        text = f"<tool_result>{m['content']}</tool_result>" if m["role"] == "tool" else m.get("content") or ""
        role = "user" if m["role"] == "tool" else m["role"]
        if role == "user" and merged and merged[-1]["role"] == "user":
            merged[-1]["content"] += "\n\n" + text
        else:
            merged.append(m | dict(role=role, content=text))
    drop = not any(m.get("tools") for m in merged)
    last = max((i for i, m in enumerate(merged) if m["role"] == "user" or (m["role"] == "system" and i)), default=-1)
    out = BOS
    for i, m in enumerate(merged):
        prefix = EFFORT.format(effort) if thinking and i == 0 else ""
        if m["role"] == "system" or (i == 0 and prefix):
            out += SYSTEM
        out += prefix
        if m["role"] == "system":
            out += m["content"]
            if m.get("tools"):
                out += "\n\n" + TOOLS.replace("{schemas}", "\n".join(json.dumps(t, ensure_ascii=False)
                                                                       for t in m["tools"]))
        elif m["role"] == "user":
            out += USER + m["content"]
        else:
            if thinking and (not drop or i > last):
                out += m.get("reasoning", "") + END_THINK
            out += m["content"] + (calls_block(m["calls"]) if m.get("calls") else "") + EOS
        follows = merged[i + 1]["role"] if i + 1 < len(merged) else "assistant" if open_turn else None
        if m["role"] != "assistant" and follows == "assistant" and (m["role"] == "user" or i):
            out += ASSISTANT + (THINK if thinking and (not drop or i >= last) else END_THINK)
    return out


# ---- reading replies -----------------------------------------------------------------------------------------------
_BLOCK = re.compile(rf"\n\n<{DSML} calls>\n(.*)\n</{DSML} calls>$", re.S)
_INVOKE = re.compile(rf'<{DSML} invoke name="([^"]+)">\n(.*?)\n</{DSML} invoke>(?:\n|$)', re.S)
_PARAM = re.compile(rf'<{DSML} parameter name="([^"]+)" string="(true|false)">(.*?)</{DSML} parameter>(?:\n|$)', re.S)
_JSON_TYPE = dict(string=str, integer=int, number=(int, float), boolean=bool, array=list, object=dict)


def parse(reply, thinking):
    """Reply text without EOS -> dict(reasoning, content, calls). ValueError where it is not well formed."""
    reasoning = ""
    if thinking:
        if END_THINK not in reply:
            raise ValueError("thinking is not closed")
        reasoning, reply = reply.split(END_THINK, 1)
    found = _BLOCK.search(reply)
    if not found:
        if DSML in reply:
            raise ValueError("stray markup")
        return dict(reasoning=reasoning, content=reply, calls=[])
    calls, rest = [], found[1]
    for name, body in _INVOKE.findall(rest):
        args = {}
        for key, is_str, value in _PARAM.findall(body):
            if key in args:
                raise ValueError(f"parameter {key} is repeated")
            args[key] = value if is_str == "true" else json.loads(value)
        if _PARAM.sub("", body).strip():
            raise ValueError("text between parameters")
        calls.append(dict(name=name, arguments=args))
    if _INVOKE.sub("", rest).strip() or not calls:
        raise ValueError("text between invokes")
    return dict(reasoning=reasoning, content=reply[:found.start()], calls=calls)


def valid_call(call, tools):
    """Whether the call names one of the tools and its arguments satisfy that tool's schema."""
    tool = next((t for t in tools if t["name"] == call["name"]), None)
    if tool is None:
        return False
    props, required = tool["parameters"]["properties"], tool["parameters"].get("required", [])
    for key, value in call["arguments"].items():
        if key not in props:
            return False
        want = _JSON_TYPE[props[key]["type"]]
        if not isinstance(value, want) or (isinstance(value, bool) and want is not bool):
            return False
        if "enum" in props[key] and value not in props[key]["enum"]:
            return False
    return all(r in call["arguments"] for r in required)
