"""A tokenizer.json of letters with the marks of conversations as tokens, as others train them."""

import json

MARKS = ("<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")


def write(path, marks):
    """Returns the letters, whose places are their tokens; the marks follow."""
    letters = [chr(n) for n in range(33, 127)] + ["\u0120", "\u010a"]  # of byte-level BPE, without merges
    added = [{"id": len(letters) + i, "content": mark, "special": True, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False} for i, mark in enumerate(marks)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    path.write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "merges": [],
                  "vocab": {letter: i for i, letter in enumerate(letters)}}}))
    return letters
