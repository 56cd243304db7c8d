/** How long a start takes until connections are accepted: the executable, against the same bundle on the same Node. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bench, median } from './common.ts';
import { BUNDLE } from './program.ts';

const STARTS = 10;
const LATER_MS_MAX = 100;
const BUILD = fileURLToPath(new URL('../../build/executable.mjs', import.meta.url));

/** Ten starts of each, in turn; the first of each makes what later ones find. */
export async function starts(bench: Bench): Promise<string> {
  const executable = join(bench.folder, 'wirewatch');
  const build = `const { makeExecutable } = await import(${JSON.stringify(BUILD)});
    await makeExecutable({ output: ${JSON.stringify(executable)} });`;
  execFileSync(process.execPath, ['--input-type=module', '-e', build], { stdio: 'inherit' });
  const data = join(bench.folder, 'start');
  const bundle = () => listeningAfterMs(process.execPath, [BUNDLE], data);
  const packed = () => listeningAfterMs(executable, [], data);
  await bundle();
  await packed();
  const bundleMs: number[] = [];
  const packedMs: number[] = [];
  for (let turn = 0; turn < STARTS; turn += 1) {
    bundleMs.push(await bundle());
    packedMs.push(await packed());
  }
  const laterMs = median(packedMs) - median(bundleMs);
  const verdict = laterMs <= LATER_MS_MAX ? 'reached' : 'NOT REACHED';
  return (
    `start to listening, median of ${STARTS}: the executable ${median(packedMs).toFixed(0)} ms, ` +
    `the bundle ${median(bundleMs).toFixed(0)} ms, later by ${laterMs.toFixed(0)} ms, at most ${LATER_MS_MAX}: ${verdict}`
  );
}

async function listeningAfterMs(program: string, args: readonly string[], data: string): Promise<number> {
  const startedMs = performance.now();
  const child = spawn(program, [...args, 'serve', '--data', data, '--port', '0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const tookMs = await new Promise<number>((resolve, reject) => {
    let log = '';
    child.stderr.on('data', (text: Buffer) => {
      log += text.toString();
      if (log.includes('"msg":"listening"')) resolve(performance.now() - startedMs);
    });
    child.once('exit', () => reject(new Error(`the appliance ended: ${log}`)));
  });
  child.kill('SIGTERM');
  await ended;
  return tookMs;
}
