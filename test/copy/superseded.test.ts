/** The appliance's part in the copy, once another machine took over. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createApplianceCopy } from '../../src/appliance-copy.ts';
import type { AccessReader } from '../../src/auth/access-reader.ts';
import type { Config } from '../../src/config/load.ts';
import { FIRST_GENERATION, partName } from '../../src/copy/copy-contents.ts';
import { openFolderPlace } from '../../src/copy/folder-place.ts';
import type { Conditions } from '../../src/health/alert-conditions.ts';
import { encodeFrame } from '../../src/log/frame.ts';
import { commitAfter } from '../../src/log/log-writer.ts';
import type { Logger } from '../../src/logger.ts';
import type { DetectionsReader } from '../../src/store/detections-reader.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { PROMOTE, readRole } from '../../src/store/role.ts';
import { openAccess } from '../support/access.ts';
import { createHistory, rowsFrom } from '../support/history.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

test('on a full disk it stops all the same, and the program goes on', async () => {
  const history = await createHistory();
  const { folder } = history;
  writeFileSync(folder.secret, randomBytes(32));
  openAccess(folder.root, { create: true }).close();
  history.apply(rowsFrom(1, 1));
  // The note of the role cannot be written.
  mkdirSync(join(folder.root, '.role.json.tmp'));
  const did: string[] = [];
  const said = (_: object, text: string) => void did.push(text);
  const to = testFolder();
  const copy = createApplianceCopy(
    { copy: { to, standby: false, wait: false }, verify: { every_hours: 0 } } as Config,
    {
      folder,
      access: { change: () => 1 } as AccessReader,
      reader: { db: history.db, end: () => did.push('reads end') } as unknown as DetectionsReader,
      conditions: { set() {} } as unknown as Conditions,
    },
    { error: said, warn: said, info: said } as unknown as Logger,
    () => did.push('ingest stops'),
  );
  copy.write();
  await until('the copy', () => copy.state()?.contact_at != null);
  const promotion = commitAfter(readLogMark(history.db()), { kind: PROMOTE, machine: 'other' }, Date.now());
  await openFolderPlace(to).create(
    partName(FIRST_GENERATION, promotion.entry),
    encodeFrame('commit', `${JSON.stringify({ commit: promotion })}\n`),
  );
  await until('the end', () => did.some((text) => /the next start finds it out/.test(text)));
  assert.deepEqual(did.slice(1, 3), ['reads end', 'ingest stops']);
  assert.deepEqual([copy.role(), readRole(folder).superseded], ['superseded', null]);
  await copy.close();
  history.delete();
});
