/** The metrics of a program that serves, as numbers. */

/**
 * @param admin address of the administration port
 * @returns the value of each name, in their order
 * @throws Error where the metrics have no such name, as those of the process on anything but Linux
 */
export async function readMetrics(admin: string, names: readonly string[]): Promise<number[]> {
  // On a connection of its own: a command that is waited for holds up this process for longer than an idle one is kept.
  const response = await fetch(`${admin}/metrics`, { headers: { connection: 'close' } });
  const text = await response.text();
  return names.map((name) => {
    const [, value] = new RegExp(`^${name} (\\S+)`, 'm').exec(text) ?? [];
    if (value === undefined) throw new Error(`the metrics have no ${name}: expected Linux`);
    return Number(value);
  });
}
