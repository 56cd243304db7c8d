/** What a restore compares: reads of the log that it replaces, and of the restored one, may fail. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { test } from 'node:test';
import { Given, replacedHistory } from '../../src/copy/discarded.ts';
import { listSegments } from '../../src/log/segment.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { LogFailure } from '../../src/store/log-errors.ts';
import { withHistory } from '../support/history.ts';
import { patched, withFailingReads } from '../support/patched-fs.ts';
import { testFolder } from '../support/test-folder.ts';

test('a read of the replaced log, or of its database, may fail once; the restored log must be readable', () =>
  withHistory(async (history) => {
    history.stop();
    const stage = dataFolder(testFolder());
    cpSync(history.folder.log, stage.log, { recursive: true });
    const compared = () => replacedHistory(history.folder, stage, new Given(), '').isSame;
    const isSame = (log: string, times: number) =>
      withFailingReads(listSegments(log).at(-1)?.path ?? '', times, compared);
    assert.equal(await isSame(history.folder.log, 1), true);
    assert.equal(await isSame(history.folder.log, Number.POSITIVE_INFINITY), false);
    await assert.rejects(isSame(stage.log, 1), LogFailure);
    // The driver looks for the folder of a database before it opens that.
    const looksFailing = (times: number) => {
      let left = times;
      const { root } = history.folder;
      using _ = patched('existsSync', (real) => (path) => !(path === root && left-- > 0) && real(path));
      return compared();
    };
    assert.deepEqual([1, 2].map(looksFailing), [true, false]);
  }));
