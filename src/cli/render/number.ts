// Numbers as people read them.

/** 1234567 is "1,234,567". */
export function number(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}
