// Changes single fields of a plain value, named by paths like `spec.servers[0].alias`.

/** Values by path; `undefined` removes the field. Parents that are absent are made. */
export type Edits = Readonly<Record<string, unknown>>;

/** A changed copy; the original stays as it is. */
export function editValue(original: unknown, edits: Edits): unknown {
  const copy = structuredClone(original);
  for (const [path, value] of Object.entries(edits)) setAt(copy, path, value);
  return copy;
}

function setAt(root: unknown, path: string, value: unknown): void {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== '');
  const last = parts.pop();
  if (last === undefined) throw new TypeError('a path must name a field');
  let parent = root as Record<string, unknown>;
  for (const part of parts) {
    parent[part] ??= {};
    parent = parent[part] as Record<string, unknown>;
  }
  if (value === undefined) delete parent[last];
  else parent[last] = value;
}
