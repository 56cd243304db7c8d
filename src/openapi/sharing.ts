/** Moves parts that several endpoints of the document share into components, with references to them. */

type Json = Record<string, unknown>;

/** A part as printed, and what it is called where it is shared: generators of clients make it a type. */
export interface Part {
  readonly name: string;
  readonly part: Json;
}

export interface Shared {
  /** Parts that are used at least twice, by name. */
  readonly components: Json;
  /** @returns a reference where it is shared, else itself */
  refer(part: Json): Json;
}

/**
 * @param kind of the components: `responses`, `parameters`
 * @throws Error where two parts that are shared have one name, or one has none
 */
export function share(kind: string, parts: readonly Part[]): Shared {
  const counts = new Map<string, number>();
  for (const { part } of parts) {
    const text = JSON.stringify(part);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const names = new Map<string, string>();
  const components: Json = {};
  for (const { name, part } of parts) {
    const text = JSON.stringify(part);
    if (names.has(text) || (counts.get(text) ?? 0) < 2) continue;
    if (name === '' || Object.hasOwn(components, name))
      throw new Error(`${kind}: a name of its own for ${text}`);
    names.set(text, name);
    components[name] = part;
  }
  return {
    components,
    refer(part) {
      const name = names.get(JSON.stringify(part));
      return name === undefined ? part : { $ref: `#/components/${kind}/${name}` };
    },
  };
}
