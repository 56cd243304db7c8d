/** Runs `wirewatch demo` in its own folder until it is ready. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Introduction } from '../../src/cli/demo.ts';
import { runProgram } from './program.ts';
import { testFolder } from './test-folder.ts';

export type Demonstration = Awaited<ReturnType<typeof startDemonstration>>;

export async function startDemonstration(data = testFolder()) {
  const run = runProgram(['demo', '--data', data, '--port', '0', '--json']);
  const isPrinted = () => (/^\}$/m.test(run.stdout()) ? run.stdout() : undefined);
  const text = await run.until('the output of the demonstration', isPrinted).catch((error: unknown) => {
    run.kill('SIGINT');
    throw error;
  });
  const shown: Introduction = JSON.parse(text);
  const stop = async () => {
    run.kill('SIGINT');
    assert.equal(await run.ended, 0);
    assert.equal(run.stdout(), text, 'with --json it must print exactly one document');
  };
  return { data, drop: join(data, 'drop'), run, shown, stop };
}
