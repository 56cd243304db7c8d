/** A word as a shell takes it, quoted where the shell would take it apart. */
export function pasted(value: string): string {
  return /^[\w./:@%+,=-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
