#!/usr/bin/env python3
"""Makes deepseek_v41.jsonl: random chat requests with what deepseek-recipe renders for them.

Needs `pip install deepseek-recipe==0.2.0` (MIT; a test tool, never a dependency). Each line holds the request, the
SHA-256 of the prompt, the number of control tokens in it and, for the first lines, the prompt itself.

    make_deepseek_v41.py [--n 1020] [--seed 41] [--full 25] > deepseek_v41.jsonl

What differs between the oracle and Gannet on purpose is kept out of the requests (docs/chat_encoding.md lists it):
no developer role, no double-encoded arguments, no tasks, tools with name, description and parameters, and an open
prefix of reasoning alone is written as content "" for the oracle and null for Gannet.
"""
import argparse
import hashlib
import json
import random
import sys

import deepseek_recipe as dr

SPECIAL = dr.SpecialTokens(image="<｜deepseek_image｜>")
WORDS = ["alpha", "beta", "Größe", "数据", "naïve", "🙂", "tab\there", "line\nbreak", "quote\"", "back\\slash", "{\"a\": 1}",
         "<think>", "</think>", "<｜User｜>", "<｜end▁of▁sentence｜>", "｜DSML｜", "<｜Assistant｜>", "<tool_result>", "  ", "",
         "\u2028", "\x07", "\x7f", "e\u0301", "json", "</｜DSML｜ calls>", "<｜System｜>", "1 < 2 > 0 & 'x'"]
NAMES = ["get_weather", "add", "search-web", "f_1", "read_file"]
EFFORTS = [None, "none", "minimal", "low", "medium", "high", "xhigh", "max"]


def text(r, most=3):
    return " ".join(r.choice(WORDS) for _ in range(r.randint(0, most)))


def value(r, depth=0):
    kind = r.randint(0, 8 if depth < 3 else 5)
    if kind == 0:
        return text(r, 3)
    if kind == 1:
        return r.choice([0, 1, -7, 123456789012345, 2**53])
    if kind == 2:
        return r.choice([1.5, -0.25, 1e-5, 0.1, 3.0, 12345.678, 1e-7, 2.5e10, 1e15])
    if kind == 3:
        return r.choice([True, False])
    if kind == 4:
        return None
    if kind == 5:
        return r.choice(["", "5", "true", "null", "[1]"])
    if kind == 6:
        return [value(r, depth + 1) for _ in range(r.randint(0, 3))]
    return {key(r): value(r, depth + 1) for _ in range(r.randint(0, 3))}


def key(r):
    return r.choice(["a", "b", "location", "Größe", "x y", "tags", "note", "数", "type", "zz"])


def schema(r):
    properties = {key(r): {"type": r.choice(["string", "number", "array", "boolean"]), "description": text(r, 3)}
                  for _ in range(r.randint(0, 3))}
    out = {"type": "object", "properties": properties}
    if r.random() < 0.4:
        out["required"] = list(properties)[:1]
    if r.random() < 0.3:
        out["default"] = value(r)
    return out


def tool(r, name):
    return {"type": "function", "function": {"name": name, "description": text(r, 5), "parameters": schema(r)}}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def content(r, images=True, empty=True):
    if r.random() < 0.6:
        return text(r) if empty else text(r) + "x"
    parts = []
    for _ in range(r.randint(1, 4)):
        parts.append(dict(IMAGE) if images and r.random() < 0.3 else {"type": "text", "text": text(r)})
    return parts


def assistant(r, names, counter):
    message = {"role": "assistant", "content": content(r, images=False)}
    if r.random() < 0.6:
        message["reasoning_content"] = text(r)
    results = []
    if names and r.random() < 0.5:
        calls = []
        for _ in range(r.randint(1, 3)):
            counter[0] += 1
            arguments = json.dumps({key(r): value(r) for _ in range(r.randint(0, 3))}, ensure_ascii=r.random() < 0.5)
            if r.random() < 0.1:
                arguments = r.choice(["", "not json", "[1, 2]", "7", "null"])
            calls.append({"id": f"call_{counter[0]}", "type": "function",
                          "function": {"name": r.choice(names), "arguments": arguments}})
        message["tool_calls"] = calls
        if r.random() < 0.5:
            message["content"] = None
        results = [{"role": "tool", "tool_call_id": c["id"], "content": content(r)} for c in calls]
        r.shuffle(results)
    return message, results


def request(r):
    out = {"model": "DeepSeek-V4.1-Flash", "messages": []}
    messages = out["messages"]
    tools = [tool(r, n) for n in r.sample(NAMES, r.randint(1, 3))] if r.random() < 0.5 else []
    names = [t["function"]["name"] for t in tools] or (NAMES if r.random() < 0.3 else [])
    if tools:
        out["tools"] = tools
        if r.random() < 0.2:
            out["tool_choice"] = r.choice(["none", "auto"])
    if r.random() < 0.6:
        messages.append({"role": "system", "content": content(r)})
    if r.random() < 0.1:
        messages.append({"role": "system", "content": text(r)})
    if r.random() < 0.15:
        messages.append({"role": "latest_reminder", "content": text(r)})
    counter = [0]
    for _ in range(r.randint(1, 3)):
        for _ in range(1 if r.random() < 0.85 else 2):
            messages.append({"role": "user", "content": content(r)})
        if r.random() < 0.12:
            messages.append({"role": "system", "content": text(r)})
        if r.random() < 0.1:
            messages.append({"role": "latest_reminder", "content": text(r)})
        if r.random() < 0.8:
            for _ in range(1 if r.random() < 0.9 else 2):
                message, results = assistant(r, names, counter)
                messages.append(message)
                messages.extend(results)
    if messages[-1]["role"] == "assistant":
        if r.random() < 0.5 and not messages[-1].get("tool_calls"):
            messages[-1]["prefix"] = True
            if "reasoning_content" in messages[-1] and r.random() < 0.3:
                messages[-1]["content"] = ""
        else:
            messages.append({"role": "user", "content": content(r)})
    if r.random() < 0.3:
        out["thinking"] = {"type": r.choice(["enabled", "disabled"])}
    effort = r.choice(EFFORTS)
    if effort is not None:
        out["reasoning_effort"] = effort
    if r.random() < 0.15:
        out["response_format"] = r.choice([
            {"type": "json_schema", "json_schema": {"name": "n", "schema": schema(r)}}, {"type": "json_object"},
            {"type": "text"}])
        if out["response_format"]["type"] == "json_object":
            messages.append({"role": "user", "content": "answer in json"} if messages[-1].get("prefix") is None
                            else messages.pop())
    return out


def flat(parts):
    return parts if isinstance(parts, str) else "\n\n".join(p["text"] for p in parts)


def rendered(req):
    options = dr.ConversionOptions().with_special_tokens(SPECIAL)
    conversation = dr.ChatCompletionRequest(req).convert(options).conversation
    return dr.DeepseekV41Encoding().with_special_tokens(SPECIAL).render_conversation(conversation)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1020)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--full", type=int, default=25)
    args = parser.parse_args()
    assert dr.__version__ == "0.2.0", dr.__version__
    r = random.Random(args.seed)
    made = refused = 0
    while made < args.n:
        req = request(r)
        try:
            prompt = rendered(json.loads(json.dumps(req)))
        except Exception as error:  # the oracle refuses, e.g. json_object without the word
            refused += 1
            if refused < 4:
                print("refused:", str(error)[:200], file=sys.stderr)
            continue
        last = req["messages"][-1]
        if last.get("prefix") and flat(last["content"]) == "" and "reasoning_content" in last:
            last["content"] = None
        del req["model"]
        line = {"request": req, "sha256": hashlib.sha256(prompt.prompt.encode()).hexdigest(),
                "n_special": len(prompt.special_ranges)}
        if made < args.full:
            line["prompt"] = prompt.prompt
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
        made += 1
    print(f"{made} requests, {refused} refused by the oracle", file=sys.stderr)


if __name__ == "__main__":
    main()
