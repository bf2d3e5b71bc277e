#!/usr/bin/env python3
"""Drives a server with the real OpenAI and Anthropic SDKs (tests/e2e/requirements.txt): sync, async, stream helpers,
tool loops, responses, cancelling.

usage: sdk_test.py SAY_SERVER_TOOL     the tool's model answers with the text behind "SAY " of the last turn
"""
import asyncio
import json
import subprocess
import sys
import time
import unittest
import urllib.request

import anthropic
import openai

BASE = None
CALL = ('\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="add">\n'
        '<｜DSML｜ parameter name="a" string="false">2</｜DSML｜ parameter>\n'
        '<｜DSML｜ parameter name="b" string="false">40</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>')
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
CHAT_TOOLS = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]


def running():
    text = urllib.request.urlopen(BASE + "/metrics").read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines()
               if line.startswith(("vllm:num_requests_running{", "vllm:num_requests_waiting{")))


def say(text):
    return [{"role": "user", "content": "SAY " + text}]


class OpenAi(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=BASE + "/v1", api_key="any", max_retries=0)

    def test_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], ["say"])
        self.assertEqual(self.client.models.retrieve("say").id, "say")

    def test_chat(self):
        reply = self.client.chat.completions.create(model="say", messages=say("hm</think>Hello 🫠."), logprobs=True)
        message = reply.choices[0].message
        self.assertEqual((message.content, message.reasoning_content), ("Hello 🫠.", "hm"))
        spelled = b"".join(bytes(t.bytes) for t in reply.choices[0].logprobs.content)
        self.assertEqual(spelled.decode(), "Hello 🫠.")
        self.assertEqual(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens)

    def test_stream_helper(self):
        with self.client.chat.completions.stream(model="say", messages=say("hm</think>Sum." + CALL), tools=CHAT_TOOLS) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_completion()
        self.assertIn("content.delta", kinds)
        self.assertIn("tool_calls.function.arguments.done", kinds)
        self.assertEqual(final.choices[0].message.content, "Sum.")
        self.assertEqual(json.loads(final.choices[0].message.tool_calls[0].function.arguments), {"a": 2, "b": 40})
        self.assertEqual(final.choices[0].finish_reason, "tool_calls")

    def test_tool_loop(self):
        messages = say("x</think>" + CALL)
        reply = self.client.chat.completions.create(model="say", messages=messages, tools=CHAT_TOOLS)
        call = reply.choices[0].message.tool_calls[0]
        result = sum(json.loads(call.function.arguments).values())
        messages += [reply.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": f"SAY y</think>It is {result}."}]
        reply = self.client.chat.completions.create(model="say", messages=messages, tools=CHAT_TOOLS)
        self.assertEqual(reply.choices[0].message.content, "It is 42.")
        self.assertEqual(reply.choices[0].finish_reason, "stop")

    def test_completions(self):
        reply = self.client.completions.create(model="say", prompt=["SAY one", "SAY two"], n=2, max_tokens=50)
        self.assertEqual([c.text for c in reply.choices], ["one", "one", "two", "two"])
        pieces = self.client.completions.create(model="say", prompt="SAY one two", max_tokens=50, stream=True)
        self.assertEqual("".join(c.choices[0].text for c in pieces), "one two")

    def test_responses(self):
        tools = [{"type": "function", "name": "add", "parameters": PARAMETERS, "strict": False}]
        reply = self.client.responses.create(model="say", input="SAY hm</think>Hi.", instructions="Be brief.")
        self.assertEqual(reply.output_text, "Hi.")
        self.assertEqual([item.type for item in reply.output], ["reasoning", "message"])
        with self.client.responses.stream(model="say", input="SAY hm</think>" + CALL, tools=tools) as stream:
            for _ in stream:
                pass
            final = stream.get_final_response()
        call = final.output[-1]
        self.assertEqual((call.type, json.loads(call.arguments)), ("function_call", {"a": 2, "b": 40}))
        items = [{"role": "user", "content": "go"}] + [item.model_dump(exclude_none=True) for item in final.output]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "SAY z</think>Done."})
        self.assertEqual(self.client.responses.create(model="say", input=items, tools=tools).output_text, "Done.")

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="nope", messages=say("x"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="say", messages=say("x"), temperature=5)
        self.assertEqual((caught.exception.param, caught.exception.code), ("temperature", "invalid_value"))

    def test_async_many(self):
        async def run():
            async with openai.AsyncOpenAI(base_url=BASE + "/v1", api_key="any", max_retries=0) as client:
                async def one(i):
                    stream = await client.chat.completions.create(model="say", messages=say(f"t</think>answer {i}"), stream=True)
                    return "".join([c.choices[0].delta.content or "" async for c in stream])
                return await asyncio.gather(*(one(i) for i in range(32)))
        self.assertEqual(asyncio.run(run()), [f"answer {i}" for i in range(32)])

    def test_cancel(self):
        stream = self.client.chat.completions.create(model="say", messages=say("t</think>" + "long " * 1000), stream=True)
        next(iter(stream))
        stream.close()
        begin = time.monotonic()
        while running() > 0 and time.monotonic() - begin < 2:
            time.sleep(0.01)
        self.assertEqual(running(), 0)


class Anthropic(unittest.TestCase):
    TOOLS = [{"name": "add", "description": "Adds.", "input_schema": PARAMETERS}]

    def setUp(self):
        self.client = anthropic.Anthropic(base_url=BASE, api_key="any", max_retries=0)

    def test_message_and_count(self):
        reply = self.client.messages.create(model="say", max_tokens=100, system="Be brief.", messages=say("hm</think>Hi."))
        self.assertEqual([(b.type, getattr(b, "text", None) or b.thinking) for b in reply.content], [("thinking", "hm"), ("text", "Hi.")])
        self.assertEqual(reply.stop_reason, "end_turn")
        count = self.client.messages.count_tokens(model="say", system="Be brief.", messages=say("hm</think>Hi."))
        self.assertEqual(count.input_tokens, reply.usage.input_tokens + reply.usage.cache_read_input_tokens)

    def test_stream_and_tool_loop(self):
        messages = say("hm</think>Sum." + CALL)
        with self.client.messages.stream(model="say", max_tokens=500, messages=messages, tools=self.TOOLS) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, "Sum.")
        self.assertEqual(final.stop_reason, "tool_use")
        call = final.content[-1]
        self.assertEqual(call.input, {"a": 2, "b": 40})
        messages += [{"role": "assistant", "content": final.content},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "SAY z</think>It is 42."}]}]
        reply = self.client.messages.create(model="say", max_tokens=500, messages=messages, tools=self.TOOLS)
        self.assertEqual(reply.content[-1].text, "It is 42.")

    def test_stop_sequence_and_limit(self):
        reply = self.client.messages.create(model="say", max_tokens=100, messages=say("hm</think>one two three"), stop_sequences=[" three"])
        self.assertEqual((reply.stop_reason, reply.stop_sequence, reply.content[-1].text), ("stop_sequence", " three", "one two"))
        reply = self.client.messages.create(model="say", max_tokens=4, messages=say("</think>one two three"))
        self.assertEqual(reply.stop_reason, "max_tokens")

    def test_errors(self):
        with self.assertRaises(anthropic.NotFoundError):
            self.client.messages.create(model="nope", max_tokens=5, messages=say("x"))
        with self.assertRaises(anthropic.BadRequestError):
            self.client.messages.create(model="say", max_tokens=5, messages=say("x"), stop_sequences=[""])

    def test_async(self):
        async def run():
            async with anthropic.AsyncAnthropic(base_url=BASE, api_key="any", max_retries=0) as client:
                async with client.messages.stream(model="say", max_tokens=100, messages=say("</think>async")) as stream:
                    return "".join([t async for t in stream.text_stream])
        self.assertEqual(asyncio.run(run()), "async")


if __name__ == "__main__":
    tool = subprocess.Popen([sys.argv.pop(1)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    BASE = f"http://127.0.0.1:{int(tool.stdout.readline())}"
    try:
        unittest.main()
    finally:
        tool.stdin.close()
        tool.wait(10)
