/** A word as a shell takes it, quoted where the shell would take it apart. */
export const pasted = (value: string): string =>
  /^[\w./:@%+,=-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
