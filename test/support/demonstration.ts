/** Runs `wirewatch demo` in its own folder until it is ready. */
import { join } from 'node:path';
import { runProgram } from './program.ts';
import { testFolder } from './test-folder.ts';

export interface Demonstration {
  readonly drop: string;
  /** Its output. */
  readonly shown: {
    /** The link to its console. */
    readonly console: string;
    readonly url: string;
    readonly keys: readonly { readonly name: string; readonly key: string }[];
    readonly detection: { readonly id: string } | null;
  };
  stop(): Promise<void>;
}

export async function startDemonstration(): Promise<Demonstration> {
  const data = testFolder();
  const run = runProgram(['demo', '--data', data, '--port', '0', '--json']);
  const stop = async () => {
    run.kill('SIGINT');
    await run.ended;
  };
  try {
    const text = await run.until('the output of the demonstration', () =>
      /^\}$/m.test(run.stdout()) ? run.stdout() : undefined,
    );
    return { drop: join(data, 'drop'), shown: JSON.parse(text), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
