/**
 * `wirewatch lab exam`: a correct client passes every rule, and an exam that cannot go on says why. test/long has the
 * other clients, correct and wrong; exam-grades.test.ts has the rules.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { runBeside } from '../../support/command.ts';
import {
  assertPassed,
  endLabs,
  exam,
  failed,
  hastySample,
  line,
  printCopy,
  withExam,
} from '../../support/exam.ts';

const noShell = process.platform === 'win32' && 'the commands are for a POSIX shell';

after(endLabs);

test(
  'a client without requests does not finish; a bad copy and a lab that has ended are errors; the sample client passes',
  {
    skip: noShell,
  },
  () =>
    withExam(async (lab, folder) => {
      const silent = await exam(lab, ['--client', 'true', '--patience', '1']);
      assert.deepEqual(
        failed(silent).map(({ rule, detail }) => [rule, detail.split(':', 1)[0]]),
        [['finishes', 'a restart within a period']],
      );
      const others = Object.entries(silent.outcomes).filter(([rule]) => rule !== 'finishes');
      assert.deepEqual(
        new Set(others.map(([, outcome]) => outcome)),
        new Set(['not_tested', 'advice']),
        'what was not tested has not passed',
      );
      assert.deepEqual(await lab.control('fault-list'), []);

      // Whatever was tried in the lab before.
      await lab.control('clock', { advance: '26h' });
      await lab.control('allowance');
      await lab.control('fault-add', { status: 503, times: 1000 });
      writeFileSync(path.join(folder, 'client.ts'), hastySample('client-ts'));
      const client = `export SINCE=; ${line(folder, process.execPath, 'client.ts')}`;
      assertPassed(await exam(lab, ['--client', client, '--copy', printCopy(folder)]), {});

      const unreadable = ['lab', 'exam', '--data', lab.data, '--client', client, '--copy', 'echo rows'];
      const run = await runBeside(unreadable);
      assert.equal(run.status, 1, run.stderr);
      assert.match(run.stderr, /--copy: line 1: expected one detection a line/);
      await endLabs();
      const ended = await runBeside(['lab', 'exam', '--data', lab.data]);
      assert.equal(ended.status, 1);
    }),
);
