/** Puts what stands in several endpoints of the document in one place, with references to it. */

type Json = Record<string, unknown>;

export interface Shared {
  /** What stands at least twice, by name. */
  readonly components: Json;
  /** @returns a reference where it is shared, else itself */
  refer(part: Json): Json;
}

/**
 * @param kind where the components stand: `responses`, `parameters`
 * @param parts as printed
 * @param nameOf a word for a part; parts of one word are numbered
 */
export function share(kind: string, parts: readonly Json[], nameOf: (part: Json) => string): Shared {
  const counts = new Map<string, number>();
  for (const part of parts) {
    const text = JSON.stringify(part);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const names = new Map<string, string>();
  const components: Json = {};
  for (const part of parts) {
    const text = JSON.stringify(part);
    if (names.has(text) || (counts.get(text) ?? 0) < 2) continue;
    const name = freeName(components, nameOf(part));
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

function freeName(taken: Json, word: string): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? word : `${word}${number}`;
    if (!Object.hasOwn(taken, name)) return name;
  }
}
