// Values of a page of metrics, by the series as the page writes them: `rollout_items{state="done"}`.

export function metricValues(text: string): Readonly<Record<string, number>> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}
