"""A random checkpoint of a config, in the released container: names, element types, scales, shards."""
import json
import os

import numpy as np

from formats import bf16_bits, encode_weight, to_bf16, write_safetensors


class Checkpoint:
    """stored: name -> (dtype, array) as in the file; values: name -> float64 array the model computes with."""

    def __init__(self, config, seed):
        self.c, self.rng = config, np.random.default_rng(seed)
        self.stored, self.values = {}, {}
        self._embedding_and_head()
        for layer in range(config["num_hidden_layers"]):
            self._block(f"layers.{layer}", config["n_routed_experts"])
            self._compressed_branch(layer)
            self._engram(layer)
        self._draft()

    # ---- one tensor
    def _plain(self, name, dtype, values):
        values = np.asarray(values, np.float64)
        if dtype == "BF16":
            self.stored[name], self.values[name] = (dtype, bf16_bits(values)), to_bf16(values)
        else:
            single = values.astype(np.float32)
            self.stored[name], self.values[name] = (dtype, single), single.astype(np.float64)

    def _vector(self, name, shape, dtype="BF16", mean=1.0, deviation=0.1):
        self._plain(name, dtype, mean + deviation * self.rng.standard_normal(shape))

    def _matrix(self, name, n_out, n_in, fmt="fp8", gain=1.0, weight=".weight", scale=".scale"):
        values = self.rng.standard_normal((n_out, n_in)) * (gain / n_in**0.5)
        if fmt == "bf16":
            self._plain(name + weight, "BF16", values)
            return
        dtype, codes, scales, exact = encode_weight(values, fmt)
        self.stored[name + weight], self.stored[name + scale] = (dtype, codes), ("F8_E8M0", scales)
        self.values[name + weight] = exact

    # ---- parts of the model
    def _embedding_and_head(self):
        c = self.c
        self._vector("embed.weight", (c["vocab_size"], c["hidden_size"]), mean=0, deviation=1)
        self._vector("norm.weight", c["hidden_size"])
        self._matrix("head", c["vocab_size"], c["hidden_size"], "bf16")
        for part in ("image_start", "image_newline", "image_end"):
            self._vector(part, c["hidden_size"], mean=0, deviation=1)

    def _block(self, at, n_experts):
        c = self.c
        hidden, streams, rank = c["hidden_size"], c["hc_mult"], c["q_lora_rank"]
        heads, width, ffn = c["num_attention_heads"], c["head_dim"], c["moe_intermediate_size"]
        n_mix = (2 + streams) * streams
        for site in ("attn", "ffn"):
            self._vector(f"{at}.{site}_norm.weight", hidden)
            self._vector(f"{at}.hc_{site}_fn", (n_mix, streams * hidden), "F32", 0, (streams * hidden) ** -0.5)
            self._vector(f"{at}.hc_{site}_base", n_mix, "F32", 0, 1)
            self._vector(f"{at}.hc_{site}_scale", 3, "F32", 1, 0.2)
        self._vector(f"{at}.attn.attn_sink", heads, "F32", 0, 1)
        self._matrix(f"{at}.attn.wq_a", rank, hidden)
        self._vector(f"{at}.attn.q_norm.weight", rank)
        self._matrix(f"{at}.attn.wq_b", heads * width, rank, gain=1.5)
        self._matrix(f"{at}.attn.wkv", width, hidden)
        self._vector(f"{at}.attn.kv_norm.weight", width)
        self._matrix(f"{at}.attn.wo_a", c["o_groups"] * c["o_lora_rank"], heads * width // c["o_groups"])
        self._matrix(f"{at}.attn.wo_b", hidden, c["o_groups"] * c["o_lora_rank"])
        self._matrix(f"{at}.ffn.gate", n_experts, hidden, "bf16")
        self._vector(f"{at}.ffn.gate.bias", n_experts, "F32", 0, 0.2)
        self._vector(f"{at}.ffn.gate.bias_vl", n_experts, "F32", 0, 0.5)
        for expert, fmt in [("shared_experts", "fp8")] + [(f"experts.{e}", "fp4") for e in range(n_experts)]:
            self._matrix(f"{at}.ffn.{expert}.w1", ffn, hidden, fmt)
            self._matrix(f"{at}.ffn.{expert}.w3", ffn, hidden, fmt)
            self._matrix(f"{at}.ffn.{expert}.w2", hidden, ffn, fmt)

    def _compressed_branch(self, layer):
        c, at = self.c, f"layers.{layer}.attn"
        if layer in c["kv_source_layer_ids"]:
            self._matrix(f"{at}.compressor.wkv", c["head_dim"], c["hidden_size"], "bf16")
            if c["compress_ratios"][layer] > 1:
                self._matrix(f"{at}.compressor.wgate", c["head_dim"], c["hidden_size"], "bf16", gain=2)
            self._vector(f"{at}.compressor.norm.weight", c["head_dim"])
            self._matrix(f"{at}.indexer.wk", c["index_head_dim"], c["head_dim"], "bf16")
            self._vector(f"{at}.indexer.k_norm.weight", c["index_head_dim"])
        if layer in c["index_source_layer_ids"]:
            self._matrix(f"{at}.indexer.wq_b", c["index_n_heads"] * c["index_head_dim"], c["q_lora_rank"])
            self._matrix(f"{at}.indexer.weights_proj", c["index_n_heads"], c["hidden_size"], "bf16")

    def _engram(self, layer):
        c, at = self.c, f"layers.{layer}.engram"
        if layer not in c["engram_layer_ids"]:
            return
        rows = c["engram_num_embeddings"][c["engram_layer_ids"].index(layer)]
        width, streams, hidden = c["engram_head_dim"], c["hc_mult"], c["hidden_size"]
        columns = (c["engram_max_ngram_size"] - 1) * c["engram_n_heads"]
        self._matrix(f"{at}.embed", rows, width, "fp8_row", gain=width**0.5)
        self._matrix(f"{at}.wkv", (streams + 1) * hidden, columns * width)
        self._vector(f"{at}.q_weight", (streams, hidden))
        self._vector(f"{at}.k_weight", (streams, hidden))

    def _draft(self):
        c, n = self.c, self.c["num_nextn_predict_layers"]
        for stage in range(n):
            self._block(f"mtp.{stage}", c["dspark_n_routed_experts"])
        self._matrix("mtp.0.main_proj", c["hidden_size"], len(c["dspark_target_layer_ids"]) * c["hidden_size"])
        self._vector("mtp.0.main_norm.weight", c["hidden_size"])
        last, rank = f"mtp.{n - 1}", c["dspark_markov_rank"]
        self._vector(f"{last}.norm.weight", c["hidden_size"])
        self._vector(f"{last}.markov_head.embed.weight", (c["vocab_size"], rank), mean=0, deviation=1)
        self._matrix(f"{last}.markov_head.head", c["vocab_size"], rank, "bf16")
        self._matrix(f"{last}.confidence_head.proj", 1, c["hidden_size"] + rank, "bf16")

    # ---- files
    def write(self, folder, n_shards):
        if n_shards == 1:
            write_safetensors(os.path.join(folder, "model.safetensors"), self.stored, {"format": "pt"})
            return
        shards, where, total = [{} for _ in range(n_shards)], {}, 0
        for i, name in enumerate(sorted(self.stored)):
            shards[i * n_shards // len(self.stored)][name] = self.stored[name]
        for i, shard in enumerate(shards):
            file = f"model-{i + 1:05d}-of-{n_shards:05d}.safetensors"
            write_safetensors(os.path.join(folder, file), shard, {"format": "pt"})
            where |= {name: file for name in shard}
            total += sum(array.nbytes for _, array in shard.values())
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as out:
            json.dump(index, out, indent=0)
