"""Goldens of single layers, and how far a right fp32 implementation may be from them.

Every layer is run from the stored output of the one before it, so that a flipped code of a cache, or a bf16 rounding
that went the other way, stays inside one layer. What such flips may do is computed, not guessed: the transcription runs
the same layers again and again with every fp32 result disturbed at random by its own rounding error (Reference
`jitter`). docs/numerics.md has the argument, the meaning of the bounds, and their use.
"""
import numpy as np

from formats import bf16, f32, i32
from prompts import DRAWS, draw

SAMPLES, FACTOR = 12, 2.0
POOL_PROMPTS, POOL_SAMPLES = 3, 4  # for the bounds of values: prompts as they come, choices decided or not
N_TOKENS = 44
# Values that are rounded to bf16 in the modes that round.
ROUNDED = ("streams", "engram_out", "attn_out", "ffn_out", "window_rows", "rows", "index_keys", "taps", "final_norm",
           "embeddings")
ENDS_SAMPLES = 100  # of the few operations behind the last layer
VALUES = ("streams", "pre_mix", "engram_out", "attn_out", "ffn_out", "ffn.route_weights", "taps", "final_norm", "logits")
# Cache rows: the largest step between two neighbouring codes, as a share of the largest magnitude of a block.
CODED = {"window_rows": 1 / 7, "rows": 3 / 8, "index_keys": 2 / 3}


def run_layers(case, prompt, mode, inputs=None, jitter=None):
    """Values of every layer. Without `inputs` a layer takes what the one before gave; else the stored streams."""
    model, c = case.model(mode, jitter), case.config
    positions, rows = np.arange(len(prompt.ids)), model.engram_rows(prompt.ids, prompt.is_image)
    x = model.w["embed.weight"][prompt.ids]
    x[prompt.is_image] = prompt.span
    h, pre = model.start(x)
    out, taps = {"embeddings": x, "engram_rows": rows}, {}
    for layer in range(c["num_hidden_layers"]):
        at = f"layers.{layer}"
        if inputs is not None and layer:
            h, pre = inputs[f"layers.{layer - 1}.streams"], inputs[f"layers.{layer - 1}.pre_mix"]
        model.trace = {}
        h, pre, entering = model.layer(layer, h, pre, positions, prompt.is_image, rows)
        out |= model.trace
        if layer in c["kv_source_layer_ids"]:
            out |= {f"{at}.rows": model.rows[layer], f"{at}.index_keys": model.index_keys[layer]}
        taps[layer] = entering
    out["tapped"] = np.stack([taps[i] for i in c["dspark_target_layer_ids"]], 1)
    if inputs is not None:
        h, pre = inputs[f"{at}.streams"], inputs[f"{at}.pre_mix"]
    return out | run_ends(model, out["tapped"], h, pre)


def run_ends(model, tapped, h, pre):
    """What leaves the backbone: taps of the streams that enter the target layers, final norm and logits."""
    norm = model.rms(model.collapse(h, pre), "norm")
    taps = np.concatenate([model.mean_of_streams(tapped[:, i]) for i in range(tapped.shape[1])], -1)
    return {"taps": taps, "final_norm": norm, "logits": model.product(norm, model.w["head.weight"])}


def kind_of(name):
    return name.split(".", 2)[-1] if name.startswith("layers.") else name


def same_choices(config, run, exact, layer):
    """Rows in which two runs chose the same experts, rows and candidates, as far as this layer depends on them."""
    same = np.all(run[f"layers.{layer}.ffn.route_ids"] == exact[f"layers.{layer}.ffn.route_ids"], 1)
    if config["compress_ratios"][layer]:
        at = f"layers.{max(s for s in config['index_source_layer_ids'] if s <= layer)}.selected"
        same &= np.array([np.array_equal(a, b) for a, b in zip(run[at], exact[at])])
    return same


class Bounds:
    """The largest and the root-mean-square deviation of each kind of value; of cache rows the number of flips."""

    def __init__(self, config):
        self.c, self.worst, self.rms, self.flips, self.moves = config, {}, {}, {}, {}

    def add(self, run, exact):
        for name, value in run.items():
            kind = kind_of(name)
            if kind in CODED:
                self.flips[kind] = max(self.flips.get(kind, 0), int((value != exact[name]).sum()))
                self.moves[kind] = max(self.moves.get(kind, 0), np.abs(value - exact[name]).max())
            elif kind in VALUES:
                gap = value - exact[name]
                if name.startswith("layers."):
                    gap = gap[same_choices(self.c, run, exact, int(name.split(".")[1]))]
                self.worst[kind] = max(self.worst.get(kind, 0), np.abs(gap).max())
                self.rms[kind] = max(self.rms.get(kind, 0), np.sqrt((gap * gap).mean()))

    def tensors(self, exact, rounds):
        """Of values that are rounded to bf16 at least two of a layer's may round the other way."""
        out = {}
        for kind, worst in self.worst.items():
            values = [v for name, v in exact.items() if kind_of(name) == kind]
            ulp = 2.0**-7 * max(np.abs(v).max() for v in values) if rounds and kind in ROUNDED else 0.0
            least = ulp * np.sqrt(2 / min(v.size for v in values))
            out[f"bounds.{kind}"] = f32([max(FACTOR * worst, ulp), max(FACTOR * self.rms[kind], least)])
        for kind, share in CODED.items():
            values = [v for name, v in exact.items() if kind_of(name) == kind]
            step = share * max(np.abs(v).max() for v in values)
            coded = [step, FACTOR * self.flips[kind] + 4]
            out[f"bounds.{kind}"] = f32(coded if rounds else [FACTOR * self.moves[kind], max(v.size for v in values)])
        return out


def draw_prompt(case, mode, attempt):
    prompt = draw(case, np.random.default_rng([case.seed, 5, attempt]), N_TOKENS, with_image=True)
    return prompt, run_layers(case, prompt, mode)


def disturbed(case, prompt, mode, exact, sample):
    return run_layers(case, prompt, mode, exact, np.random.default_rng([7, sample]))


def value_bounds(case, mode):
    bounds = Bounds(case.config)
    for attempt in range(POOL_PROMPTS):
        prompt, exact = draw_prompt(case, mode, 1000 + attempt)
        for sample in range(POOL_SAMPLES):
            bounds.add(disturbed(case, prompt, mode, exact, sample), exact)
    last = f"layers.{case.config['num_hidden_layers'] - 1}"
    model = case.model(mode, np.random.default_rng(8))
    for _ in range(ENDS_SAMPLES):
        bounds.add(run_ends(model, exact["tapped"], exact[f"{last}.streams"], exact[f"{last}.pre_mix"]), exact)
    return bounds


def all_choices_alike(config, run, exact):
    """Whether two runs chose the same experts, rows and candidate blocks everywhere."""
    same = all(same_choices(config, run, exact, layer).all() for layer in range(config["num_hidden_layers"]))
    blocks = [name for name in exact if kind_of(name) == "candidates"]
    return same and all(np.array_equal(a, b) for name in blocks for a, b in zip(run[name], exact[name]))


def decided_prompt(case, mode, bounds):
    """The first drawn prompt in which no disturbed run chooses otherwise, so that a test may ask for equal choices."""
    for attempt in range(DRAWS):
        prompt, exact = draw_prompt(case, mode, attempt)
        runs = []
        for sample in range(SAMPLES):
            runs.append(disturbed(case, prompt, mode, exact, sample))
            if not all_choices_alike(case.config, runs[-1], exact):
                break
        else:
            for run in runs:
                bounds.add(run, exact)
            print(f"  layers, {mode}: draw {attempt}", flush=True)
            return prompt, exact
    raise AssertionError((case.name, mode, "no decided prompt in", DRAWS, "draws"))


def padded(lists, width):
    out = np.full((len(lists), width), -1)
    for t, row in enumerate(lists):
        out[t, :len(row)] = row
    return out


def layer_goldens(case, mode):
    bounds = value_bounds(case, mode)
    prompt, exact = decided_prompt(case, mode, bounds)
    c, out = case.config, {"ids": i32(prompt.ids), "is_image": i32(prompt.is_image), "image_embeddings": f32(prompt.span)}
    for name, value in exact.items():
        kind = kind_of(name)
        if kind == "selected":
            out[name] = i32(padded(value, c["index_topk"]))
        elif kind == "candidates":
            out[name] = i32(padded(value, c["candidate_topk_blocks"]))
        elif kind in ("engram_rows", "ffn.route_ids"):
            out[name] = i32(value)
        elif kind in ROUNDED and mode != "float":
            out[name] = bf16(value)
        elif kind not in ("index_scores", "ffn.route_scores", "tapped"):
            out[name] = f32(value)
    limits = bounds.tensors(exact, mode != "float")
    print("    " + ", ".join(f"{k[7:]} {v[1][0]:.1e}/{v[1][1]:.1e}" for k, v in sorted(limits.items())), flush=True)
    return out | limits
