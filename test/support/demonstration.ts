/** Runs `wirewatch demo` in its own folder until it is ready. */
import { join } from 'node:path';
import { runProgram } from './program.ts';
import { testFolder } from './test-folder.ts';

/** What it prints. */
interface Shown {
  /** The link to its console. */
  readonly console: string;
  readonly url: string;
  readonly keys: readonly { readonly name: string; readonly key: string }[];
  readonly detection: { readonly id: string } | null;
}

export type Demonstration = Awaited<ReturnType<typeof startDemonstration>>;

export async function startDemonstration() {
  const data = testFolder();
  const run = runProgram(['demo', '--data', data, '--port', '0', '--json']);
  const stop = () => run.kill('SIGINT');
  try {
    const text = await run.until('the output of the demonstration', () =>
      /^\}$/m.test(run.stdout()) ? run.stdout() : undefined,
    );
    const shown: Shown = JSON.parse(text);
    return { drop: join(data, 'drop'), shown, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
