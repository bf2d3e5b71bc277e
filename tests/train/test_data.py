"""Chat encoding, tool conversations and the order of the data."""
import json
import random

import numpy as np
import pytest

import chat
import tools


def test_encoding_of_plain_turns():
    m = [dict(role="system", content="Be brief."), dict(role="user", content="Hi")]
    assert chat.encode(m, open_turn=True) == \
        "<｜begin▁of▁sentence｜><｜System｜>Be brief.<｜User｜>Hi<｜Assistant｜></think>"
    m = [dict(role="system", content="S"), dict(role="user", content="q1"),
         dict(role="assistant", content="a1", reasoning="r1"), dict(role="user", content="q2")]
    assert chat.encode(m, True, 50, True) == (
        "<｜begin▁of▁sentence｜><｜System｜>Reasoning Effort: 50 (range 1-100, the higher the value, the more thorough the "
        "reasoning)\n\nS<｜User｜>q1<｜Assistant｜></think>a1<｜end▁of▁sentence｜><｜User｜>q2<｜Assistant｜><think>")


def test_encoding_of_calls_and_results():
    m = [dict(role="system", content="", tools=[{"name": "f"}]), dict(role="user", content="go"),
         dict(role="assistant", content="", reasoning="r", calls=[dict(name="f", arguments={"a": 1.5, "b": "5"})]),
         dict(role="tool", content="one"), dict(role="user", content="and?")]
    text = chat.encode(m, True, 75, True)
    assert "reasoning)\n\n\n\n## Tools" in text and '{"name": "f"}\n\nYou MUST' in text
    assert text.endswith('<think>r</think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="f">\n'
                         '<｜DSML｜ parameter name="a" string="false">1.5</｜DSML｜ parameter>\n'
                         '<｜DSML｜ parameter name="b" string="true">5</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n'
                         '</｜DSML｜ calls><｜end▁of▁sentence｜><｜User｜><tool_result>one</tool_result>\n\nand?'
                         '<｜Assistant｜><think>')


def test_every_made_call_is_valid_and_reads_back():
    r = random.Random(4)
    for _ in range(300):
        m = tools.conversation(r, True)
        for turn in (t for t in m if t.get("calls")):
            got = chat.parse(turn["reasoning"] + chat.END_THINK + turn["content"] + chat.calls_block(turn["calls"]), True)
            assert got["calls"] == turn["calls"] and got["reasoning"] == turn["reasoning"]
            assert all(chat.valid_call(c, m[0]["tools"]) for c in got["calls"])


@pytest.mark.parametrize("reply", ["no end of thinking", "x</think>\n\n<｜DSML｜ calls>\nfoo\n</｜DSML｜ calls>",
                                   "x</think>a <｜DSML｜ b"])
def test_malformed_replies_are_refused(reply):
    with pytest.raises(ValueError):
        chat.parse(reply, True)


def test_wrong_arguments_are_no_valid_call():
    t = [tools.schema(next(t for t in tools.T if t[0] == "get_weather"))]
    ok = dict(name="get_weather", arguments={"city": "Oslo", "unit": "celsius"})
    assert chat.valid_call(ok, t)
    for name, args in (("other", ok["arguments"]), ("get_weather", {"city": 5}), ("get_weather", {"unit": "celsius"}),
                       ("get_weather", {"city": "Oslo", "unit": "kelvin"}), ("get_weather", {"city": "Oslo", "x": 1})):
        assert not chat.valid_call(dict(name=name, arguments=args), t)


def test_data_order_resumes_and_keeps_shares(tmp_path):
    import train
    for s, n in (("a", 40), ("b", 10)):
        for name in (f"rows-{s}", f"held-{s}"):
            np.save(tmp_path / f"{name}.npy", np.full((n, 9), 3, np.uint16))
    json.dump(dict(a=0.75, b=0.25), open(tmp_path / "mix.json", "w"))
    one, two = train.Data(tmp_path, 8, "cpu"), train.Data(tmp_path, 8, "cpu")
    first = [one.next().tolist() for _ in range(12)]
    assert all(sum(i < 40 for i in rows) == 6 for rows in first)
    for _ in range(5):
        two.next()
    three = train.Data(tmp_path, 8, "cpu")
    three.given = dict(two.given)
    assert [three.next().tolist() for _ in range(7)] == first[5:]
    assert len({i for rows in first[:6] for i in rows if i < 40}) == 36          # no row twice within an epoch
