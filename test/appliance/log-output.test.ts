/** What happens when log lines cannot be written: the appliance continues, and lost lines are counted. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { LogOutput, openLogFile } from '../../src/log-output.ts';
import { serve } from '../support/log-lines.ts';
import { inFolder } from '../support/program.ts';
import { source } from '../support/scripts.ts';

const FULL = '/dev/full';

const noFullDevice = !existsSync(FULL) && 'there is no /dev/full';

/** An output that goes to this file, with its failures, and how many lines were lost each time. */
function outputTo(path: string) {
  const [failures, lost]: [string[], number[]] = [[], []];
  const output = new LogOutput(openLogFile(path), {
    onFailure: (error) => failures.push(error.message),
    onLost: (lines) => lost.push(lines),
  });
  const flushed = () => new Promise<void>((resolve) => output.flush(resolve));
  return { output, failures, lost, flushed };
}

describe('when it cannot be written', { skip: noFullDevice }, () => {
  test('a log file on a full disk stops nothing, and stderr reports it', () =>
    inFolder(async (folder) => {
      const run = serve(folder, FULL);
      await run.until('the complaint', () =>
        run.stderr().startsWith(`wirewatch: cannot write to the log file ${FULL}: ENOSPC`) ? true : undefined,
      );
      const address = path.join(folder, 'data', 'address');
      await run.until('its address', () => (existsSync(address) ? true : undefined));
      // Once it responds, it also handles signals.
      await (await fetch(`${readFileSync(address, 'utf8').split('\n')[0]}/v1/health`)).text();
      assert.equal(await run.stop(), 0);
      assert.equal(run.stderr().split('\n').length, 2, run.stderr());
    }));

  test('waiting lines are written once possible, and dropped ones are counted', () =>
    inFolder(async (folder) => {
      const file = path.join(folder, 'log');
      const { output, failures, lost, flushed } = outputTo(FULL);
      const line = `${'x'.repeat(1023)}\n`;
      output.write(line);
      await flushed();
      for (let count = 0; count < 1100; count += 1) output.write(line);
      await flushed();
      assert.equal(failures.length, 1);
      output.switchTo(openLogFile(file));
      await flushed();
      // The first line was being written, and as many as the buffer allows were waiting.
      assert.deepEqual(lost, [1100 - 1024]);
      assert.equal(readFileSync(file, 'utf8'), line.repeat(1025));
      output.write('afterwards\n');
      await flushed();
      assert.ok(readFileSync(file, 'utf8').endsWith('\nafterwards\n'));
      assert.equal(failures.length, 1);
      rmSync(file);
    }));

  test('a pipe without a reader is a failure like others: later lines go to the next file', () =>
    inFolder(async (folder) => {
      const [pipe, file] = [path.join(folder, 'pipe'), path.join(folder, 'log')];
      spawnSync('mkfifo', [pipe]);
      const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
      const { output, failures, flushed } = outputTo(pipe);
      closeSync(reader);
      output.write('a line\n');
      await flushed();
      assert.equal(failures.length, 1);
      assert.match(failures[0] ?? '', /EPIPE/);
      output.switchTo(openLogFile(file));
      output.write('another\n');
      await flushed();
      assert.equal(readFileSync(file, 'utf8'), 'a line\nanother\n');
    }));

  test('does not delay the end of the process', () => {
    const code = `import { createLogger } from ${source('logger.ts')};
      createLogger({ level: 'info' }).info('a line');
      process.exit(3);`;
    const stderr = openSync(FULL, 'w');
    const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
      stdio: ['ignore', 'ignore', stderr],
      timeout: 60_000,
    });
    closeSync(stderr);
    assert.equal(status, 3);
  });
});
