/** Reads metrics of a running appliance. */

/**
 * @param admin the address of the administration port
 * @returns the values, in the order of the names
 * @throws Error if a metric is missing: those of the process exist only on Linux
 */
export async function readMetrics(admin: string, names: readonly string[]): Promise<number[]> {
  // On a new connection: a synchronous command may block this process for longer than an idle connection stays open.
  const response = await fetch(`${admin}/metrics`, { headers: { connection: 'close' } });
  const text = await response.text();
  return names.map((name) => {
    const [, value] = new RegExp(`^${name} (\\S+)`, 'm').exec(text) ?? [];
    if (value === undefined) throw new Error(`there is no metric ${name}: expected Linux`);
    return Number(value);
  });
}
