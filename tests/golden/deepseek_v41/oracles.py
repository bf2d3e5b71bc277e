"""The two independent implementations, run in fp32 with their cache quantisers off.

nemo-automodel  all of the model, DSpark too; whole sequences only
mlx-lm          its real cache, one-shot, in chunks and token by token; no Engram, no image routing, no DSpark: it is
                compared with the transcription of the same weights without Engram
"""
import contextlib
import importlib.metadata
import os

import numpy as np

import toy_tokenizer

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiling costs more than it saves at this size


def versions():
    names = ("nemo-automodel", "mlx-lm", "mlx", "torch", "transformers", "numpy")
    found = {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _bare(config):
    return {k: v for k, v in config.items() if k != "model_type"}


class Nemo:
    def __init__(self, case, folder):
        import torch
        from nemo_automodel.components.models.common import BackendConfig
        from nemo_automodel.components.models.deepseek_v41 import attention, dspark
        from nemo_automodel.components.models.deepseek_v41.config import DeepseekV41Config, DeepseekV41TextConfig
        from nemo_automodel.components.models.deepseek_v41.engram import _compressed_token_map
        from nemo_automodel.components.models.deepseek_v41.model import DeepseekV41ForCausalLM
        from transformers import PreTrainedTokenizerFast

        torch.set_default_dtype(torch.float32)
        torch.manual_seed(0)
        torch.set_num_threads(1)
        attention.quantize_cache = dspark.quantize_cache = lambda values, **_: values
        self.torch, self.case = torch, case
        backend = dict(attn="eager", linear="torch", rms_norm="torch_fp32", rope_fusion=False, gate_precision="float32",
                       dispatcher="torch", experts="torch")
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"))
        ids, n = _compressed_token_map(tokenizer)
        assert n == case.config["engram_compressed_vocab_size"] and np.array_equal(ids, case.token_map), "token map"
        config = DeepseekV41Config(text_config={**_bare(case.config), "dtype": "float32"}, dtype="float32",
                                   vision_config={"num_hidden_layers": 0}, image_token_id=toy_tokenizer.IMAGE_ID)
        self.model = DeepseekV41ForCausalLM(config, backend=BackendConfig(**backend, enable_hf_state_dict_adapter=True),
                                            tokenizer=tokenizer)
        self._load(self.model, lambda n: not n.startswith(("mtp.", "image_")))
        text = DeepseekV41TextConfig(**{**_bare(case.config), "dtype": "float32"})
        self.drafter = dspark.DeepseekV41DSparkModel(text, BackendConfig(**backend), num_anchors=1,
                                                     enable_confidence_head=True)
        self._load(self.drafter, lambda n: n.startswith("mtp."))
        with torch.no_grad():
            self.drafter.embed_tokens.weight.copy_(self._tensor(case.checkpoint.values["embed.weight"]))
            self.drafter.lm_head.weight.copy_(self._tensor(case.checkpoint.values["head.weight"]))
        self._check_hash_tables()

    def _tensor(self, array):
        return self.torch.from_numpy(np.asarray(array, np.float32))

    def _load(self, module, wanted):
        state = {n: self._tensor(v) for n, v in self.case.checkpoint.values.items() if wanted(n)}
        result = module.load_state_dict(module.state_dict_adapter.from_hf(state), strict=False)
        left = [k for k in result.missing_keys if not k.startswith(("embed_tokens", "lm_head", "model.vi", "vision"))]
        assert not left and not result.unexpected_keys, (left, result.unexpected_keys)
        module.eval().float()

    def _check_hash_tables(self):
        if not self.case.config["engram_layer_ids"]:
            return
        hashes = self.model.model.engram_hash
        primes = np.array([np.ravel(p) for p in self.case.tables[0]])
        assert np.array_equal(hashes.primes.numpy(), primes), "primes"
        assert np.array_equal(hashes.multipliers.numpy(), np.array(self.case.tables[1])), "multipliers"

    def logits(self, ids, is_image=None, span=None):
        torch, extra = self.torch, {}
        if span is not None:
            rows = self.case.checkpoint.values["embed.weight"][ids]
            rows[is_image] = span
            extra = dict(inputs_embeds=self._tensor(rows)[None], image_mask=torch.from_numpy(is_image)[None])
        with torch.no_grad():
            hidden = self.model.model(torch.from_numpy(np.asarray(ids))[None], **extra)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
            return self.model.lm_head(hidden).reshape(len(ids), -1).numpy().astype(np.float64)

    def draft(self, taps, anchor, draft_ids):
        """Logits of the block, given the ids that the block itself picked."""
        torch, d, n = self.torch, self.drafter, len(taps)
        at = torch.tensor([[n]])
        noise = [self.case.config["dspark_noise_token_id"]] * (self.case.config["dspark_block_size"] - 1)
        with torch.no_grad():
            out = super(type(d), d).forward(
                d.embed_tokens(torch.tensor([[anchor] + noise])), self._tensor(taps)[None],
                position_ids=d.build_position_ids(at, n),
                attention_mask=d.build_attention_mask(at, torch.ones(1, 1, dtype=torch.bool), n, torch.float32),
                previous_token_ids=torch.tensor([[anchor, *draft_ids[:-1]]]))
            logits = d.compute_logits(out.normalized_hidden_states) + out.transition_logits
            return logits[0].numpy(), out.confidence_pred[0].numpy()


class Mlx:
    def __init__(self, case):
        import mlx.core as mx
        from mlx_lm.models import deepseek_v41 as lib

        lib._fake_quant_fp8 = lambda x, block_size=32: x
        lib._fake_quant_fp4 = lambda x, **_: x
        config = dict(case.config, engram_layer_ids=[])
        self.mx = mx
        self.model = lib.Model(lib.ModelArgs.from_dict({"model_type": "deepseek_v41", "text_config": config}))
        weights = self.model.sanitize({n: mx.array(v.astype(np.float32)) for n, v in case.checkpoint.values.items()})
        self.model.load_weights(list(weights.items()), strict=True)

    def run(self, ids, sizes=None):
        """Logits, one-shot without a cache or in steps of these sizes with it; the cache comes back too."""
        cache, out, at = (self.model.make_cache(), [], 0) if sizes else (None, [], 0)
        for n in sizes or [len(ids)]:
            out.append(np.array(self.model(self.mx.array(ids[at:at + n])[None], cache=cache))[0].astype(np.float64))
            at += n
        return np.concatenate(out), cache

    def greedy(self, first, cache, n):
        ids = [int(first)]
        while len(ids) < n:
            logits = np.array(self.model(self.mx.array(np.array(ids[-1:]))[None], cache=cache))[0, -1]
            ids.append(int(logits.argmax()))
        return ids


def _same_greedy(ours, gaps, theirs, bound, what):
    """Equal up to the first step whose gap is below twice the bound (there both may part for good)."""
    for step, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            assert gaps[step] <= 2 * bound, (what, step, gaps[step])
            return step
    return len(ours)


def compare(case, folder, answers, end_to_end):
    """(largest deviations by name, logits of the oracle that has all of this config's parts)."""
    figures, logits = {}, {}
    nemo = Nemo(case, folder)
    worst = worst_draft = worst_confidence = 0
    for name, (ids, is_image, span, _) in case.prompts.items():
        ours = answers[name]
        all_ids = np.concatenate([ids, ours["greedy"]])
        mask = np.concatenate([is_image, np.zeros(len(ours["greedy"]), bool)])
        got = nemo.logits(all_ids, mask if span is not None else None, span)
        logits[name] = got[:len(ids)]
        worst = max(worst, np.abs(got[:len(ids)] - ours["logits"]).max())
        n = _same_greedy(ours["greedy"], ours["greedy_gap"], got[len(ids) - 1:-1].argmax(1), 5e-5, ("nemo", name))
        assert n == len(ours["greedy"]), ("nemo", name, n)
        got, confidence = nemo.draft(ours["taps"], ours["anchor"], ours["draft_ids"])
        worst_draft = max(worst_draft, np.abs(got - ours["draft_logits"]).max())
        worst_confidence = max(worst_confidence, np.abs(confidence - ours["confidence"]).max())
    figures |= {"nemo logits": worst, "nemo draft logits": worst_draft, "nemo draft confidence": worst_confidence}

    mlx, worst = Mlx(case), {"one-shot": 0, "chunks": 0, "steps": 0}
    own = answers if not case.config["engram_layer_ids"] else end_to_end(case, engram=False)
    for name in ("one", "forty", "ninety_seven", "long"):
        ids, ours = case.prompts[name][0], own[name]
        cut = [7, 1, 12, len(ids) - 20] if len(ids) > 20 else [len(ids)]
        for how, sizes in (("one-shot", None), ("chunks", cut), ("steps", [1] * len(ids))):
            if how == "steps" and name == "long":
                continue
            got, cache = mlx.run(ids, sizes)
            worst[how] = max(worst[how], np.abs(got - ours["logits"]).max())
            if how == "chunks":
                theirs = mlx.greedy(got[-1].argmax(), cache, len(ours["greedy"]))
                n = _same_greedy(ours["greedy"], ours["greedy_gap"], theirs, 5e-5, ("mlx", name))
                assert n == len(theirs), ("mlx", name, n)
    figures |= {f"mlx {how}": x for how, x in worst.items()}
    return figures, logits
