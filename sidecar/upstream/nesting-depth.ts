// How deep a value of a server may be nested. JSON.parse takes any depth, but whatever walks or
// writes such a value again ends with the engine's stack: one hostile tool would take all others
// along. Pure.

/** No real schema comes near. */
export const MAX_NESTING = 128;

/** Whether objects and lists lie deeper in each other than `limit` levels; itself never deeper. */
export function isNestedDeeper(value: unknown, limit = MAX_NESTING): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (limit === 0) return true;
  for (const member of Object.values(value)) if (isNestedDeeper(member, limit - 1)) return true;
  return false;
}
