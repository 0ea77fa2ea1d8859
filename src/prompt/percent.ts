/** A share in per cent that never says all when something is missing, nor nothing when something is there: `99 %`, `<1 %`. Of nothing it is all. */
export function percentOf(part: number, whole: number): string {
  if (whole <= 0 || part >= whole) return '100 %';
  const rounded = Math.min(99, Math.round((100 * part) / whole));
  return rounded === 0 && part > 0 ? '<1 %' : `${rounded} %`;
}
