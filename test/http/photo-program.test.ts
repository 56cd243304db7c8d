/** Photos of the real program: from an export without a URL to the photo at the signed URL. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';

const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });

const row = newRow();

async function photoAddress(): Promise<string> {
  const detection = await appliance.detection(idOf(row, 'imagewire'));
  return detection?.source.image_url ?? assert.fail('no URL yet');
}

test('the URL in a detection serves the photo once it exists, and never expires', async () => {
  const line = await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([row]));
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
  const address = await photoAddress();
  assert.equal((await fetch(address)).status, 404);

  // The default folder is photos/ in the data folder; no restart is necessary.
  const photos = join(appliance.data, 'photos');
  mkdirSync(photos);
  writeFileSync(join(photos, '.draft'), 'a photo');
  renameSync(join(photos, '.draft'), join(photos, `${row.source_internal_id}.webp`));
  const response = await fetch(address);
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'image/webp']);
  assert.equal(await response.text(), 'a photo');
  assert.equal((await fetch(`${address}x`)).status, 404);
});

test('[photos] folder defaults to photos in the data folder, and is relative to the configuration file', () => {
  const file = join(appliance.data, 'photos.toml');
  writeFileSync(file, '[photos]\nfolder = "pictures"\n');
  const load = (env: Record<string, string>, from?: string) =>
    loadConfig({ flags: {}, env, file: from, dataFolder: appliance.data }).photos.folder;
  assert.equal(load({}), join(appliance.data, 'photos'));
  assert.equal(load({}, file), join(appliance.data, 'pictures'));
  assert.equal(load({ WIREWATCH_PHOTOS_FOLDER: 'pictures' }), join(process.cwd(), 'pictures'));
  assert.equal(load({ WIREWATCH_PHOTOS_FOLDER: '' }, file), join(appliance.data, 'photos'));
  assert.throws(
    () => load({ WIREWATCH_PHOTOS_FODLER: 'x' }),
    /WIREWATCH_PHOTOS_FODLER: unknown setting.*FOLDER/,
  );
});
