"""The other end of the `process` backend, in plain Python: copy this file beside your own.

    from rollout_worker import serve

    model = load_my_model()                # once

    def execute(item):
        return {"answer": model(item.payload["prompt"])}

    serve(execute)

Whatever `execute` returns is the output, as JSON. An exception is the error of that item. What is printed goes to
standard error, where `rollout logs` finds it: standard output belongs to the protocol.
"""

import base64
import json
import os
import queue
import sys
import threading


class Cancelled(Exception):
    """The item is not wanted any more, or its time is over."""


class Item:
    """One attempt to execute one item."""

    def __init__(self, request, say):
        self._say = say
        self._cancelled = threading.Event()
        self.id = request["id"]
        #: SHA-256 of the item, in hexadecimal.
        self.item = request["item"]
        #: Counted from 1.
        self.attempt = request["attempt"]
        #: The line of the input: what its JSON means, or the text.
        self.payload = request.get("payload")
        if "payload_base64" in request:
            self.payload = base64.b64decode(request["payload_base64"])
        #: What an earlier attempt saved last, as bytes; None when there is nothing.
        self.checkpoint = base64.b64decode(request["checkpoint"]) if request["checkpoint"] else None
        #: The item's key; None when it has none.
        self.key = request.get("key")
        #: What the last item of the key left, a value of JSON or bytes; None when there is nothing. Set it to leave another one:
        #: it is kept when this item succeeds, together with its output.
        self.state = request.get("state")
        if "state_base64" in request:
            self.state = base64.b64decode(request["state_base64"])

    @property
    def cancelled(self):
        return self._cancelled.is_set()

    def check(self):
        """To be called now and then: raises Cancelled when there is no use in going on."""
        if self.cancelled:
            raise Cancelled()

    def save(self, checkpoint):
        """Where the next attempt goes on when this one is preempted: bytes, at most a mebibyte."""
        self._say(type="checkpoint", id=self.id, checkpoint=base64.b64encode(checkpoint).decode())

    def progress(self, **fields):
        self._say(type="progress", id=self.id, **fields)

    def log(self, message):
        """A line in this item's own log, for processes that have several items at once."""
        self._say(type="log", id=self.id, message=str(message))


def state_of(item):
    """What a result says of the state of the item's key."""
    if item.key is None and item.state is None:
        return {}
    if isinstance(item.state, bytes):
        return {"state_base64": base64.b64encode(item.state).decode()}
    return {"state": item.state}


def serve(execute, payload="json", save=None):
    """Executes items until the worker has no more. `payload="text"`: every payload is a text, JSON or not. `save(seconds)` saves
    what this process has learned; it is called after the last item when the worker leaves and there is so much time for it."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def say(**message):
        line = json.dumps(message)
        with lock:
            out.write(line + "\n")
            out.flush()

    items = queue.Queue()
    current = {}

    def read():
        for line in sys.stdin:
            request = json.loads(line)
            if request["type"] == "item":
                item = Item(request, say)
                current[item.id] = item
                items.put(item)
            elif request["type"] == "cancel" and request["id"] in current:
                current[request["id"]]._cancelled.set()
            elif request["type"] == "save":
                items.put(request["time_left_ms"] / 1000)
        items.put(None)

    threading.Thread(target=read, daemon=True).start()
    say(type="ready", payload=payload, saves=save is not None)
    while True:
        item = items.get()
        if item is None:
            return
        if isinstance(item, float):  # So many seconds are left, and no item will come.
            try:
                save(item)
                say(type="saved")
            except Exception as error:
                say(type="not_saved", message=f"{type(error).__name__}: {error}")
            continue
        try:
            item.check()
            output = execute(item)
            say(type="result", id=item.id, output=output, **state_of(item))
        except Cancelled:
            say(type="cancelled", id=item.id)
        except Exception as error:  # The item's own, whatever it is.
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            say(type="error", id=item.id, message=f"{type(error).__name__}: {error}")
        finally:
            current.pop(item.id, None)
