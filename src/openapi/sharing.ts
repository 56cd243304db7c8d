/** Moves parts that several endpoints have to the components of the document. */

type Json = Record<string, unknown>;

/** A part, and the name of its component: generators of clients use it for a type. */
export interface Part {
  readonly name: string;
  readonly part: Json;
}

export interface Shared {
  /** The parts that occur at least twice, by name. */
  readonly components: Json;
  /** @returns a reference if the part is a component, else the part */
  refer(part: Json): Json;
}

/**
 * @param kind the section of the components: `responses`, `parameters`
 * @throws Error if two components have the same name, or one has none
 */
export function share(kind: string, parts: readonly Part[]): Shared {
  const names = new Map<string, string>();
  const components: Json = {};
  for (const [text, [first, ...more]] of Map.groupBy(parts, ({ part }) => JSON.stringify(part))) {
    if (first === undefined || more.length === 0) continue;
    const { name, part } = first;
    if (name === '' || Object.hasOwn(components, name))
      throw new Error(`${kind}: this part needs a name of its own: ${text}`);
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
