"""Goldens of single layers, and how far a right fp32 implementation may be from them.

Every layer is run from the stored output of the one before it, so that a flipped code of a cache or a bf16 rounding
that went the other way stays inside one layer. What such flips may do is measured, not guessed: the transcription
runs the same layers SAMPLES times with every fp32 sum disturbed at random within its own error bound (Reference
`jitter`). The bound of a tensor is FACTOR times the largest deviation seen (docs/numerics.md says why that covers an
implementation's single run). Discrete choices are `decided` where their score gap exceeds the bound of the scores;
undecided rows are left out of every comparison.
"""
import numpy as np

from formats import bf16, f32, i32

SAMPLES, FACTOR = 16, 2.0
PROMPT = "image"
# Values that are rounded to bf16 in the modes that round.
ROUNDED = ("streams", "engram_out", "attn_out", "ffn_out", "window_rows", "rows", "index_keys")


def padded(lists, width):
    out = np.full((len(lists), width), -1)
    for t, row in enumerate(lists):
        out[t, :len(row)] = row
    return out


def run_layers(case, mode, inputs=None, jitter=None):
    """Every layer's values. Without `inputs` each layer takes what the one before gave; else the stored streams."""
    ids, is_image, span, _ = case.prompts[PROMPT]
    model, c = case.model(mode, jitter), case.config
    positions, rows = np.arange(len(ids)), model.engram_rows(ids, is_image)
    x = model.w["embed.weight"][ids]
    x[is_image] = span
    h, pre = model.start(x)
    out = {"embeddings": x, "engram_rows": rows}
    taps = {}
    for layer in range(c["num_hidden_layers"]):
        at = f"layers.{layer}"
        if inputs is not None and layer:
            h, pre = inputs[f"layers.{layer - 1}.streams"], inputs[f"layers.{layer - 1}.pre_mix"]
        model.trace = {}
        h, pre, entering = model.layer(layer, h, pre, positions, is_image, rows)
        out |= model.trace
        if layer in c["kv_source_layer_ids"]:
            out |= {f"{at}.rows": model.rows[layer], f"{at}.index_keys": model.index_keys[layer]}
        taps[layer] = model.r(entering.mean(1))
    if inputs is not None:
        h, pre = inputs[f"{at}.streams"], inputs[f"{at}.pre_mix"]
    out["taps"] = np.concatenate([taps[i] for i in c["dspark_target_layer_ids"]], -1)
    out["final_norm"] = model.rms(model.collapse(h, pre), "norm")
    out["logits"] = model.product(out["final_norm"], model.w["head.weight"])
    return out


def _deviation(a, b):
    """Largest |a - b| of each row."""
    return np.abs(np.where(np.isfinite(a), a, 0) - np.where(np.isfinite(b), b, 0)).reshape(len(a), -1).max(1)


class Spread:
    """Deviations of disturbed runs from the exact one: score bounds first, then the values of decided rows."""

    def __init__(self, case, mode, exact):
        self.c, self.exact = case.config, exact
        self.runs = [run_layers(case, mode, exact, np.random.default_rng(7000 + s)) for s in range(SAMPLES)]
        self.n = len(exact["embeddings"])

    def score_bound(self, name):
        """Of each row: FACTOR times the largest move of a score, twice because two scores are compared."""
        return 2 * FACTOR * np.max([_deviation(run[name], self.exact[name]) for run in self.runs], 0)

    def decided(self, layer):
        """(rows whose experts are decided, rows whose selection is decided) of a layer."""
        c, at = self.c, f"layers.{layer}"
        routed = self.exact[f"{at}.ffn.route_gap"] > self.score_bound(f"{at}.ffn.route_scores")
        selected = np.ones(self.n, bool)
        if c["compress_ratios"][layer]:
            index = f"layers.{max(s for s in c['index_source_layer_ids'] if s <= layer)}"
            selected = self.exact[f"{index}.select_gap"] > self.score_bound(f"{index}.index_scores")
            publisher = c["candidate_source_layer_id"]
            if 0 <= publisher < layer and index != f"layers.{publisher}":
                at = f"layers.{publisher}"
                selected &= self.exact[f"{at}.candidate_gap"] > self.score_bound(f"{at}.index_scores")
        return routed, selected

    def value_bound(self, name, rows):
        """The largest deviation of any of these rows, over the runs that made the exact run's choices there."""
        deviation = [_deviation(run[name], self.exact[name])[rows] for run in self.runs]
        return FACTOR * np.max(deviation) if rows.any() else 0.0


def layer_goldens(case, mode):
    """(tensors for the file, number of rows decided, number of rows in all)."""
    exact = run_layers(case, mode)
    spread, c = Spread(case, mode, exact), case.config
    number = (lambda name, a: bf16(a) if mode != "float" and name.split(".")[-1] in ROUNDED else f32(a))
    out = {"embeddings": number("streams", exact["embeddings"]), "engram_rows": i32(exact["engram_rows"])}
    n_decided = n_rows = 0
    for layer in range(c["num_hidden_layers"]):
        at = f"layers.{layer}"
        routed, selected = spread.decided(layer)
        n_decided, n_rows = n_decided + int((routed & selected).sum()), n_rows + len(routed)
        out |= {f"{at}.routing_decided": i32(routed), f"{at}.selection_decided": i32(selected)}
        of = {"window_rows": np.ones(spread.n, bool), "engram_out": np.ones(spread.n, bool), "attn_out": selected,
              "ffn_out": routed & selected, "streams": routed & selected, "pre_mix": routed & selected,
              "ffn.route_weights": routed & selected}
        for name, rows in of.items():
            if f"{at}.{name}" in exact:
                value = exact[f"{at}.{name}"]
                out[f"{at}.{name}"] = number(name, value)
                out[f"{at}.{name}.bound"] = f32([spread.value_bound(f"{at}.{name}", rows)])
        for name in ("rows", "index_keys"):
            if f"{at}.{name}" in exact:
                every = np.ones(len(exact[f"{at}.{name}"]), bool)
                out[f"{at}.{name}"] = number(name, exact[f"{at}.{name}"])
                out[f"{at}.{name}.bound"] = f32([spread.value_bound(f"{at}.{name}", every)])
        out[f"{at}.ffn.route_ids"] = i32(exact[f"{at}.ffn.route_ids"])
        out[f"{at}.ffn.route_gap"] = f32(exact[f"{at}.ffn.route_gap"])
        if f"{at}.selected" in exact:
            out[f"{at}.selected"] = i32(padded(exact[f"{at}.selected"], c["index_topk"]))
            out[f"{at}.select_gap"] = f32(exact[f"{at}.select_gap"])
        if f"{at}.candidates" in exact:
            out[f"{at}.candidates"] = i32(padded(exact[f"{at}.candidates"], c["candidate_topk_blocks"]))
            out[f"{at}.candidate_gap"] = f32(exact[f"{at}.candidate_gap"])
    every = np.ones(spread.n, bool)
    for name in ("taps", "final_norm", "logits"):
        keep = number("streams" if name != "logits" else name, exact[name])
        out |= {name: keep, f"{name}.bound": f32([spread.value_bound(name, every)])}
    return out, n_decided, n_rows
