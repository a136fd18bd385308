#!/bin/sh
# Counts the words of the text on its standard input, and takes its time over it, as work does. With WORD_COUNT_JOURNAL set it
# leaves a line there when it is done, so that one can see afterwards what was executed how often.
set -eu
words=$(wc -w)
sleep "${WORD_COUNT_SECONDS:-0.4}"
if [ -n "${WORD_COUNT_JOURNAL:-}" ]; then
  echo "$ROLLOUT_ITEM_ID $ROLLOUT_ATTEMPT $ROLLOUT_WORKER_ID" >>"$WORD_COUNT_JOURNAL"
fi
echo $((words))
