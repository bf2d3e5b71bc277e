"""The prompts of a config and the float-mode answers to them.

Routing and selection are discontinuous: where two scores are closer than fp32 resolves, two right implementations
choose differently and their logits part for good. So a prompt is drawn again until no choice of experts, rows or blocks
in it, in its continuation or in its draft hangs on a gap below CLEAR. That an fp32 implementation then chooses alike is
shown by the two oracles, not assumed.
"""
from dataclasses import dataclass

import numpy as np

import toy_tokenizer
from formats import to_bf16

CLEAR = 4e-6
DRAWS = 256
N_IMAGE, IMAGE_AT = 10, 13  # START, two lines of three cells and a NEWLINE, END
SPAN_PARTS = {0: "start", 4: "newline", 8: "newline", 9: "end"}


@dataclass
class Prompt:
    ids: np.ndarray
    is_image: np.ndarray
    span: np.ndarray | None  # embedding rows of the image positions

    def rows(self):
        """Positions whose logits are stored: all of a short prompt, some of a long one."""
        n = len(self.ids)
        return np.arange(n) if n < 64 else np.unique(np.append(np.linspace(0, n - 1, 32 if n < 128 else 12).astype(int), n - 1))


@dataclass
class Answer:
    logits: np.ndarray
    taps: np.ndarray
    greedy: np.ndarray
    greedy_gap: np.ndarray  # best logit minus second best
    anchor: int
    draft_ids: np.ndarray
    draft_logits: np.ndarray
    confidence: np.ndarray


def draw(case, rng, n, with_image):
    ids, is_image = rng.integers(3, 305, n), np.zeros(n, bool)
    if not with_image:
        return Prompt(ids, is_image, None)
    is_image[IMAGE_AT:IMAGE_AT + N_IMAGE] = True
    ids[is_image] = toy_tokenizer.IMAGE_ID
    span = to_bf16(rng.standard_normal((N_IMAGE, case.config["hidden_size"])))
    for i, part in SPAN_PARTS.items():
        span[i] = case.checkpoint.values["image_" + part]
    return Prompt(ids, is_image, span)


def smallest_gap(trace):
    gaps = [a for name, a in trace.items() if name.endswith(("route_gap", "select_gap", "candidate_gap"))]
    return min((a.min() for a in gaps if len(a)), default=np.inf)


def answer(model, prompt, n_greedy):
    """None where a choice is not clear."""
    logits, taps = [], []
    for a in range(0, len(prompt.ids), 128):  # in pieces, to stop early
        here = slice(a, a + 128)
        span = prompt.span if prompt.span is None else prompt.span[:prompt.is_image[here].sum()]
        logits.append(model.forward(prompt.ids[here], prompt.is_image[here], span))
        taps.append(model.trace["taps"])
        if smallest_gap(model.trace) < CLEAR:
            return None
    logits = np.concatenate(logits)
    anchor = int(logits[-1].argmax())
    draft_ids, draft_logits, confidence = model.draft(anchor)
    greedy, gaps, row = [], [], logits[-1]
    while len(greedy) < n_greedy and smallest_gap(model.trace) >= CLEAR:
        second, best = np.sort(row)[-2:]
        greedy.append(int(row.argmax()))
        gaps.append(best - second)
        row = model.forward(greedy[-1:])[-1]
    if len(greedy) < n_greedy or min(gaps) < 2e-4:
        return None
    return Answer(logits, np.concatenate(taps), np.array(greedy), np.array(gaps), anchor, np.array(draft_ids), draft_logits,
                  confidence)


def settle(case, n_long, n_greedy, engram=True):
    """name -> (prompt, answer)."""
    found = {}
    kinds = {"one": 1, "forty": 40, "ninety_seven": 97, "image": 44, "long": n_long}
    for name, n in kinds.items():
        for attempt in range(DRAWS):
            rng = np.random.default_rng([case.seed, n, int(engram), attempt])
            prompt = draw(case, rng, n, name == "image")
            reply = answer(case.model(engram=engram), prompt, n_greedy)
            if reply is not None:
                break
        assert reply is not None, (case.name, name, "no clear prompt in", DRAWS, "draws")
        print(f"  {name}: draw {attempt}", flush=True)
        found[name] = prompt, reply
    return found
