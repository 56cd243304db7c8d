/** Memory and open files of a running appliance, by its metrics. */

const NAMES = ['process_resident_memory_bytes', 'process_open_fds'] as const;

/**
 * @param admin the address of the administration port
 * @throws Error if a metric is missing: those of the process exist only on Linux
 */
export async function readProcess(admin: string): Promise<{ memoryMib: number; files: number }> {
  // On a new connection: a synchronous command may block this process for longer than an idle connection stays open.
  const response = await fetch(`${admin}/metrics`, { headers: { connection: 'close' } });
  const text = await response.text();
  const [memory, files] = NAMES.map((name) => new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]);
  if (memory === undefined || files === undefined) throw new Error(`${NAMES} are missing: expected Linux`);
  return { memoryMib: Number(memory) / 2 ** 20, files: Number(files) };
}
