"""A "model" that is loaded once and then continues prompts, a word at a time. A preempted item goes on at its last word."""

import json
import sys
import time

from rollout_worker import serve

TEXT = """
the sea is calm tonight the tide is full the moon lies fair upon the straits on the french coast the light gleams and is
gone the cliffs of england stand glimmering and vast out in the tranquil bay come to the window sweet is the night air
"""


def load():
    """Which word follows which."""
    words = TEXT.split()
    model = {}
    for word, following in zip(words, words[1:] + words[:1]):
        model.setdefault(word, following)
    return model


print("loading the model", file=sys.stderr)
MODEL = load()


def execute(item):
    words = item.payload["prompt"].split()
    if item.checkpoint is not None:
        words = json.loads(item.checkpoint)
    resumed_at = len(words)
    wanted = len(item.payload["prompt"].split()) + item.payload.get("words", 5)
    while len(words) < wanted:
        item.check()
        if words[-1] not in MODEL:
            raise ValueError(f"the model does not know the word {words[-1]}")
        words.append(MODEL[words[-1]])
        item.save(json.dumps(words).encode())
        time.sleep(item.payload.get("seconds_per_word", 0))
    return {"text": " ".join(words), "resumed_at": resumed_at}


serve(execute)
