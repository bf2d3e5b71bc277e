"""DeepSeek-V4.1 in NumPy, one sequence, any chunking: what the C++ model is compared with.

Written from the model's description, not from an implementation; checked against two by oracles.py. All arithmetic
is float64, so that the deviation of an fp32 implementation from it is that implementation's own error.

Modes     float      nothing is rounded or quantised
          precise    bf16 at the model's rounding points, cache quantisers
          reference  precise, and fp8 in front of every product with an fp8 or fp4 weight
`trace`   dict that receives the inner values of the last call, keyed as in README.md
`jitter`  None, or a generator: every fp32 sum is then disturbed within its error bound (docs/numerics.md)
"""
import numpy as np

from formats import through_fp4_index, through_fp4_row, through_fp8, to_bf16

NEG_INF = -np.inf


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def softplus(z):
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def rope_frequencies(config, ratio):
    """fp32 frequency of each rotary pair: YaRN only in layers with a compressed branch."""
    n = config["qk_rope_head_dim"]
    base = config["compress_rope_theta"] if ratio else config["rope_theta"]
    pair = np.arange(n // 2)
    freq = 1 / base ** (2 * pair / n)
    yarn = config.get("rope_scaling")
    if ratio and yarn:
        turns = lambda t: n * np.log(yarn["original_max_position_embeddings"] / (2 * np.pi * t)) / (2 * np.log(base))
        low, high = max(np.floor(turns(yarn["beta_fast"])), 0), min(np.ceil(turns(yarn["beta_slow"])), n - 1)
        ramp = np.clip((pair - low) / max(high - low, 0.001), 0, 1)
        freq = freq / yarn["factor"] * ramp + freq * (1 - ramp)
    return freq.astype(np.float32)


def sum_deviation(n_terms, squares):
    """Standard deviation of an fp32 sum in 16 lanes: n/16 + 5 roundings of partial sums (docs/numerics.md)."""
    return 2.0**-24 * np.sqrt((n_terms / 16 + 5) * squares)


def source(layers, layer):
    return max(s for s in layers if s <= layer)


class Reference:
    def __init__(self, config, weights, token_map, tables, mode="float", jitter=None):
        self.c, self.w, self.token_map, (self.primes, self.multipliers) = config, weights, token_map, tables
        self.rounding, self.quantising, self.fp8_inputs = mode != "float", mode != "float", mode == "reference"
        self.jitter = jitter
        self.reset()

    def reset(self):
        self.n_seen, self.compressed_ids = 0, []
        self.windows, self.rows, self.index_keys, self.open_group, self.draft_windows = {}, {}, {}, {}, {}
        self.selected, self.candidates, self.trace = None, None, {}

    # ---- arithmetic with its rounding -------------------------------------------------------------------------------
    def r(self, x):
        return to_bf16(x) if self.rounding else x

    def noise(self, value, deviation):
        """An fp32 result of this exact value and this standard deviation of its rounding error."""
        if self.jitter is None:
            return value
        return value + self.jitter.standard_normal(np.shape(value)) * deviation

    def product(self, x, w):
        """x W^T."""
        y = x @ w.T
        if self.jitter is None:
            return y
        return self.noise(y, sum_deviation(x.shape[-1], (x * x) @ (w * w).T))

    def linear(self, x, name):
        return self.r(self.product(x, self.w[name + ".weight"]))

    def quantised_linear(self, x, name):
        return self.linear(through_fp8(x) if self.fp8_inputs else x, name)

    def rms(self, x, name):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.c["rms_norm_eps"]) * self.w[name + ".weight"]
        return self.r(self.noise(y, 2.0**-23 * np.abs(y)))

    def rotate(self, x, positions, ratio, inverse=False):
        """x [T, ..., d]: the last rotary channels, adjacent pairs; the angle is an fp32 product."""
        n = self.c["qk_rope_head_dim"]
        angle = np.asarray(positions, np.float32)[:, None] * rope_frequencies(self.c, ratio)
        turn = np.exp((-1j if inverse else 1j) * angle.astype(np.float64))
        turn = turn.reshape((len(x),) + (1,) * (x.ndim - 2) + (n // 2,))
        pairs = x[..., -n:].reshape(x.shape[:-1] + (n // 2, 2))
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * turn
        tail = np.stack([turned.real, turned.imag], -1).reshape(x.shape[:-1] + (n,))
        size = np.abs(pairs).sum(-1, keepdims=True).repeat(2, -1).reshape(tail.shape)
        return self.r(np.concatenate([x[..., :-n], self.noise(tail, 2.0**-24 * size)], -1))

    def cached(self, x, through):
        return through(x) if self.quantising else x

    # ---- hyper-connections ------------------------------------------------------------------------------------------
    def mix(self, h, at):
        s, eps = self.c["hc_mult"], self.c["hc_eps"]
        flat = h.reshape(len(h), -1)
        m = self.product(flat, self.w[at + "_fn"]) / np.sqrt((flat * flat).mean(-1, keepdims=True) + self.c["rms_norm_eps"])
        scale = self.w[at + "_scale"][[0] * s + [1] * s + [2] * s * s]
        m = m * scale + self.w[at + "_base"]
        pre, post = sigmoid(m[:, :s]) + eps, 2 * sigmoid(m[:, s:2 * s])
        comb = m[:, 2 * s:].reshape(-1, s, s)
        comb = np.exp(comb - comb.max(2, keepdims=True))
        comb = comb / comb.sum(2, keepdims=True) + eps
        for i in range(2 * self.c["hc_sinkhorn_iters"] - 1):  # column, then row and column in turn
            comb = comb / (comb.sum(1 + i % 2, keepdims=True) + eps)
        noisy = lambda a: self.noise(a, 2.0**-20 * np.abs(a))
        return noisy(pre), noisy(post), noisy(comb)

    def collapse(self, h, pre):
        return self.r(self.noise(np.einsum("ts,tsc->tc", pre, h), 2.0**-24 * np.einsum("ts,tsc->tc", np.abs(pre), np.abs(h))))

    def mean_of_streams(self, h):
        return self.r(self.noise(h.mean(1), 2.0**-24 * np.abs(h).mean(1)))

    def expand(self, h, y, post, comb):
        new = post[:, :, None] * y[:, None] + np.einsum("tjk,tjc->tkc", comb, h)
        if self.jitter is not None:
            size = post[:, :, None] * np.abs(y)[:, None] + np.einsum("tjk,tjc->tkc", comb, np.abs(h))
            new = self.noise(new, 2.0**-24 * size)
        return self.r(new)

    # ---- Engram -----------------------------------------------------------------------------------------------------
    def engram_rows(self, ids, is_image):
        """Table row of each token, layer and column; remembers the compressed ids."""
        c, n = self.c, self.c["engram_max_ngram_size"]
        first = len(self.compressed_ids)
        self.compressed_ids += [None if image else int(self.token_map[i]) for i, image in zip(ids, is_image)]
        pad = int(self.token_map[c["engram_pad_token_id"]])
        result = np.zeros((len(ids), len(c["engram_layer_ids"]), (n - 1) * c["engram_n_heads"]), np.int64)
        for t in range(len(ids)):
            terms = []
            for back in range(n):
                p = first + t - back
                stop = p < 0 or self.compressed_ids[p] is None or (back > 0 and terms[-1] is None)
                terms.append(None if stop else self.compressed_ids[p])
            terms = [pad if x is None else x for x in terms]
            for slot, (primes, mult) in enumerate(zip(self.primes, self.multipliers)):
                hashed, offset, columns = terms[0] * int(mult[0]), 0, []
                for back in range(1, n):
                    hashed ^= terms[back] * int(mult[back])
                    for prime in primes[back - 1]:
                        columns.append(offset + hashed % prime)
                        offset += prime
                result[t, slot] = columns
        return result

    def engram(self, h, rows, is_image, at):
        c, hidden, s = self.c, self.c["hidden_size"], self.c["hc_mult"]
        kv = self.quantised_linear(self.w[at + ".embed.weight"][rows].reshape(len(h), -1), at + ".wkv")
        key, value = kv[:, :s * hidden].reshape(-1, s, hidden), kv[:, s * hidden:]
        unit = lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + c["rms_norm_eps"])
        dot = (unit(h) * unit(key) * self.w[at + ".q_weight"] * self.w[at + ".k_weight"]).sum(-1) / hidden**0.5
        gate = sigmoid(np.where(np.signbit(dot), -1, 1) * np.sqrt(np.maximum(np.abs(dot), 1e-6)))
        gate = np.where(is_image[:, None], 0, gate)
        update = gate[:, :, None] * value[:, None]
        return self.r(self.noise(h + update, 2.0**-22 * np.abs(update)))

    # ---- compressed branch ------------------------------------------------------------------------------------------
    def compress(self, x, layer, positions):
        at, ratio = f"layers.{layer}.attn", self.c["compress_ratios"][layer]
        first = positions[0] // ratio * ratio
        if ratio == 1:
            latent = self.linear(x, at + ".compressor.wkv")
        else:
            both = np.stack([self.product(x, self.w[at + f".compressor.{m}.weight"]) for m in ("wkv", "wgate")], 1)
            if layer in self.open_group:
                both = np.concatenate([self.open_group[layer], both])
            n = len(both) // ratio
            self.open_group[layer] = both[n * ratio:]
            kv, gate = np.moveaxis(both[:n * ratio].reshape(n, ratio, 2, self.c["head_dim"]), 2, 0)
            share = np.exp(gate - gate.max(1, keepdims=True))
            share /= share.sum(1, keepdims=True)
            pooled = (share * kv).sum(1)
            latent = self.r(self.noise(pooled, 2.0**-23 * (share * np.abs(kv)).sum(1)))
        latent = self.rms(latent, at + ".compressor.norm")
        row_positions = first + ratio * np.arange(len(latent))
        key = self.rms(self.linear(latent, at + ".indexer.wk"), at + ".indexer.k_norm")
        key = self.cached(self.rotate(key, row_positions, ratio), through_fp4_index)
        row = self.cached(self.rotate(latent, row_positions, ratio), through_fp4_row)
        for store, new in ((self.index_keys, key), (self.rows, row)):
            store[layer] = np.concatenate([store[layer], new]) if layer in store else new

    def index_scores(self, x, qr, layer, positions):
        c, at = self.c, f"layers.{layer}.attn.indexer"
        ratio, heads, width = c["compress_ratios"][layer], c["index_n_heads"], c["index_head_dim"]
        query = self.quantised_linear(qr, at + ".wq_b").reshape(len(x), heads, width)
        query = self.cached(self.rotate(query, positions, ratio), through_fp4_index)
        weight = self.linear(x, at + ".weights_proj") * (heads * width) ** -0.5
        keys = self.index_keys[source(c["kv_source_layer_ids"], layer)]
        scores = np.empty((len(x), len(keys)))
        for a in range(0, len(x), 128):
            b = slice(a, a + 128)
            hit = np.maximum(np.einsum("thd,jd->thj", query[b], keys), 0)
            scores[b] = np.einsum("thj,th->tj", hit, weight[b])
            if self.jitter is not None:
                dots = np.einsum("thd,jd->thj", query[b] ** 2, keys**2)  # one channel after the other: width roundings
                own = 2.0**-24 * np.sqrt(width * np.einsum("thj,th->tj", dots, weight[b] ** 2))
                scores[b] = self.noise(scores[b], own + 2.0**-24 * np.einsum("thj,th->tj", hit, np.abs(weight[b])))
        return scores

    def select(self, x, qr, layer, positions):
        """Rows chosen for each token, rising; keeps the candidate blocks of the candidate source."""
        c, ratio, k = self.c, self.c["compress_ratios"][layer], self.c["index_topk"]
        scores = self.index_scores(x, qr, layer, positions)
        publisher = c["candidate_source_layer_id"]
        chosen, gaps, kept, block_gaps = [], [], [], []
        for t, p in enumerate(positions):
            visible = scores[t, :(p + 1) // ratio].copy()
            if layer == publisher:
                blocks, gap = self.best_blocks(visible)
                kept.append(blocks)
                block_gaps.append(gap)
            elif 0 <= publisher < layer:
                outside = ~np.isin(np.arange(len(visible)) // c["candidate_block_size"], self.candidates[t])
                visible[outside] = NEG_INF
            order = np.lexsort((np.arange(len(visible)), -visible))
            order = order[:int(np.isfinite(visible).sum())]
            chosen.append(np.sort(order[:k]))
            gaps.append(visible[order[k - 1]] - visible[order[k]] if len(order) > k else np.inf)
        self.selected = chosen
        self.trace |= {f"layers.{layer}.selected": chosen, f"layers.{layer}.select_gap": np.array(gaps),
                       f"layers.{layer}.index_scores": self.visible_scores(scores, positions, ratio)}
        if layer == publisher:
            self.candidates = kept
            self.trace |= {f"layers.{layer}.candidates": kept, f"layers.{layer}.candidate_gap": np.array(block_gaps)}

    def visible_scores(self, scores, positions, ratio):
        seen = np.arange(scores.shape[1]) < (np.asarray(positions)[:, None] + 1) // ratio
        return np.where(seen, scores, 0)

    def best_blocks(self, visible):
        size, limit = self.c["candidate_block_size"], self.c["candidate_topk_blocks"]
        n = -(-len(visible) // size)
        best = np.array([visible[b * size:(b + 1) * size].max() for b in range(n)])
        if n:
            best[-1] = np.inf  # the block of the newest row
        order = np.lexsort((np.arange(n), -best))
        gap = best[order[limit - 1]] - best[order[limit]] if n > limit else np.inf
        return np.sort(order[:limit]), gap

    # ---- attention --------------------------------------------------------------------------------------------------
    def query_and_row(self, x, positions, ratio, at):
        c = self.c
        qr = self.rms(self.quantised_linear(x, at + ".wq_a"), at + ".q_norm")
        q = self.quantised_linear(qr, at + ".wq_b").reshape(len(x), c["num_attention_heads"], c["head_dim"])
        row = self.rms(self.quantised_linear(x, at + ".wkv"), at + ".kv_norm")
        row = self.cached(self.rotate(row, positions, ratio), through_fp8)
        return qr, self.rotate(q, positions, ratio), row

    def attend(self, q, keys, valid, sink):
        """q [T,H,d], keys [T,N,d] (each token its own), valid [T,N]."""
        width = q.shape[-1]
        s = np.einsum("thd,tnd->thn", q, keys) * width**-0.5
        if self.jitter is not None:
            s = self.noise(s, sum_deviation(width, np.einsum("thd,tnd->thn", q * q, keys * keys) / width))
        s = np.where(valid[:, None], s, NEG_INF)
        top = s.max(-1, keepdims=True)
        p = np.exp(s - top)
        total = p.sum(-1, keepdims=True) + np.exp(sink[:, None] - top)
        p = self.r(p)
        out = np.einsum("thn,tnd->thd", p, keys) / total
        if self.jitter is not None:
            squares = np.einsum("thn,tnd->thd", p * p, keys * keys)
            out = self.noise(out, 2.0**-24 * np.sqrt(keys.shape[1] * squares) / total)
        return self.r(out)

    def project_out(self, o, positions, ratio, at):
        groups = self.c["o_groups"]
        o = self.rotate(o, positions, ratio, inverse=True).reshape(len(o), groups, -1)
        wo_a = self.w[at + ".wo_a.weight"].reshape(groups, self.c["o_lora_rank"], -1)
        z = np.stack([self.r(self.product(o[:, g], wo_a[g])) for g in range(groups)], 1)
        return self.quantised_linear(z.reshape(len(o), -1), at + ".wo_b")

    def attention(self, x, layer, positions):
        c, at, window = self.c, f"layers.{layer}.attn", self.c["sliding_window"]
        ratio = c["compress_ratios"][layer]
        qr, q, row = self.query_and_row(x, positions, ratio, at)
        old = self.windows.get(layer, row[:0])
        recent = np.concatenate([old, row])
        self.windows[layer] = recent[-(window - 1):] if window > 1 else recent[:0]
        newest = len(old) + np.arange(len(x))
        slot = newest[:, None] - window + 1 + np.arange(window)
        keys, valid = recent[np.maximum(slot, 0)], slot >= 0
        self.trace[f"layers.{layer}.window_rows"] = row
        if ratio:
            if layer in c["kv_source_layer_ids"]:
                self.compress(x, layer, positions)
            if layer in c["index_source_layer_ids"]:
                self.select(x, qr, layer, positions)
            rows = self.rows.get(source(c["kv_source_layer_ids"], layer))
            n = max(1, max(map(len, self.selected)))
            pick = np.full((len(x), n), -1)
            for t, chosen in enumerate(self.selected):
                pick[t, :len(chosen)] = chosen
            padded = rows if len(rows) else np.zeros((1, c["head_dim"]))
            keys = np.concatenate([keys, padded[np.maximum(pick, 0)]], 1)
            valid = np.concatenate([valid, pick >= 0], 1)
        return self.project_out(self.attend(q, keys, valid, self.w[at + ".attn_sink"]), positions, ratio, at)

    # ---- experts ----------------------------------------------------------------------------------------------------
    def expert(self, x, at, weight=None):
        limit = self.c["swiglu_limit"]
        gate, up = self.quantised_linear(x, at + ".w1"), self.quantised_linear(x, at + ".w3")
        if limit > 0:
            gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
        act = gate * sigmoid(gate) * up
        if weight is not None:
            act = act * weight[:, None]
        return self.quantised_linear(self.r(self.noise(act, 2.0**-22 * np.abs(act))), at + ".w2")

    def experts(self, x, at, is_image, k):
        score = np.sqrt(softplus(self.product(x, self.w[at + ".gate.weight"])))
        biased = score + np.where(is_image[:, None], self.w[at + ".gate.bias_vl"], self.w[at + ".gate.bias"])
        order = np.argsort(-biased, axis=1, kind="stable")
        ids, ranked = order[:, :k], np.take_along_axis(biased, order, 1)
        weight = np.take_along_axis(score, ids, 1)
        if self.c["norm_topk_prob"] and k > 1:
            weight = weight / (weight.sum(1, keepdims=True) + 1e-20)
        weight = weight * self.c["routed_scaling_factor"]
        gap = ranked[:, k - 1] - ranked[:, k] if ranked.shape[1] > k else np.full(len(x), np.inf)
        self.trace |= {at + ".route_ids": ids, at + ".route_weights": weight, at + ".route_gap": gap,
                       at + ".route_scores": biased}
        total = np.zeros_like(x)
        for e in range(biased.shape[1]):
            token, place = np.nonzero(ids == e)
            if len(token):
                total[token] += self.expert(x[token], f"{at}.experts.{e}", weight[token, place])
        return self.r(total + self.expert(x, at + ".shared_experts"))

    # ---- layers and the model ---------------------------------------------------------------------------------------
    def block(self, h, pre, at, attention, is_image, k):
        pre_attn, post, comb = self.mix(h, at + ".hc_attn")
        y = attention(self.rms(self.collapse(h, pre), at + ".attn_norm"))
        h = self.expand(h, y, post, comb)
        pre_ffn, post, comb = self.mix(h, at + ".hc_ffn")
        z = self.experts(self.rms(self.collapse(h, pre_attn), at + ".ffn_norm"), at + ".ffn", is_image, k)
        self.trace |= {at + ".attn_out": y, at + ".ffn_out": z}
        return self.expand(h, z, post, comb), pre_ffn

    def layer(self, layer, h, pre, positions, is_image, engram_rows):
        """One backbone layer, its Engram included. Returns the new streams, the pre-mix, and the streams behind Engram."""
        c = self.c
        if layer in c["engram_layer_ids"]:
            rows = engram_rows[:, c["engram_layer_ids"].index(layer)]
            h = self.engram(h, rows, is_image, f"layers.{layer}.engram")
            self.trace[f"layers.{layer}.engram_out"] = h
        after, pre = self.block(h, pre, f"layers.{layer}", lambda x: self.attention(x, layer, positions), is_image,
                                c["num_experts_per_tok"])
        self.trace |= {f"layers.{layer}.streams": after, f"layers.{layer}.pre_mix": pre}
        return after, pre, h

    def start(self, x):
        pre = np.zeros((len(x), self.c["hc_mult"]))
        pre[:, 0] = 1
        return np.repeat(x[:, None], self.c["hc_mult"], 1), pre

    def forward(self, ids, is_image=None, embeddings=None, want_logits=True):
        """Logits of every token. `embeddings` replaces the rows where is_image."""
        c, ids = self.c, np.asarray(ids)
        is_image = np.zeros(len(ids), bool) if is_image is None else np.asarray(is_image, bool)
        positions = self.n_seen + np.arange(len(ids))
        self.n_seen += len(ids)
        self.trace = {}
        engram_rows = self.engram_rows(ids, is_image)
        x = self.w["embed.weight"][ids]
        if embeddings is not None:
            x[is_image] = embeddings
        self.trace |= {"engram_rows": engram_rows, "embeddings": x}
        h, pre = self.start(x)
        taps = {}
        for layer in range(c["num_hidden_layers"]):
            h, pre, entering = self.layer(layer, h, pre, positions, is_image, engram_rows)
            if layer in c["dspark_target_layer_ids"]:
                taps[layer] = self.mean_of_streams(entering)
        self.trace["taps"] = np.concatenate([taps[i] for i in c["dspark_target_layer_ids"]], -1)
        self.extend_draft_windows(self.trace["taps"], positions)
        if want_logits:
            self.trace["final_norm"] = self.rms(self.collapse(h, pre), "norm")
            return self.product(self.trace["final_norm"], self.w["head.weight"])

    # ---- draft ------------------------------------------------------------------------------------------------------
    def extend_draft_windows(self, taps, positions):
        main = self.rms(self.quantised_linear(taps, "mtp.0.main_proj"), "mtp.0.main_norm")
        for m in range(self.c["num_nextn_predict_layers"]):
            at = f"mtp.{m}.attn"
            row = self.rms(self.quantised_linear(main, at + ".wkv"), at + ".kv_norm")
            row = self.cached(self.rotate(row, positions, 0), through_fp8)
            kept = np.concatenate([self.draft_windows[m], row]) if m in self.draft_windows else row
            self.draft_windows[m] = kept[-self.c["sliding_window"]:]

    def draft(self, anchor):
        """The block behind the tokens seen so far: greedy ids, their logits, confidence before the sigmoid."""
        c, n, size = self.c, self.c["num_nextn_predict_layers"], self.c["dspark_block_size"]
        positions, no_image = self.n_seen + np.arange(size), np.zeros(size, bool)
        h, pre = self.start(self.w["embed.weight"][[anchor] + [c["dspark_noise_token_id"]] * (size - 1)])
        for m in range(n):
            at = f"mtp.{m}.attn"

            def attention(x):
                _, q, row = self.query_and_row(x, positions, 0, at)
                keys = np.concatenate([self.draft_windows[m], row])[None].repeat(size, 0)
                o = self.attend(q, keys, np.ones(keys.shape[:2], bool), self.w[at + ".attn_sink"])
                return self.project_out(o, positions, 0, at)

            h, pre = self.block(h, pre, f"mtp.{m}", attention, no_image, c["dspark_num_experts_per_tok"])
        last = f"mtp.{n - 1}"
        x = self.collapse(h, pre)
        logits = self.product(self.rms(x, last + ".norm"), self.w["head.weight"])
        ids, confidence = [anchor], []
        for i in range(size):
            e = self.w[last + ".markov_head.embed.weight"][ids[-1]]
            logits[i] += self.product(e, self.w[last + ".markov_head.head.weight"])
            confidence.append(self.product(np.concatenate([x[i], e]), self.w[last + ".confidence_head.proj.weight"])[0])
            ids.append(int(logits[i].argmax()))
        return ids[1:], logits, np.array(confidence)
