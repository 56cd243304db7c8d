/** What forms say will happen to files, and which first window can be expected. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareFiles, parseFileName } from '../../src/exports/file-name.ts';
import { operationForms } from '../../src/operations/table.ts';

test('the forms say where a file stays, and which one is read first', () => {
  const willOf = (name: string) => operationForms().find((form) => form.name === name)?.will ?? '';
  assert.match(willOf('window accept'), /without the file that failed, which stays in failed\//);
  const files = ['newswire.20261120T1010Z.csv', 'newswire.20261120T1000Z.csv'].flatMap((name) => {
    const parsed = parseFileName(name);
    return parsed.kind === 'export' ? parsed.file : [];
  });
  assert.match(files.sort(compareFiles)[0]?.name ?? '', /T1000Z/);
  assert.match(willOf('ingest resume'), /the oldest windows first/);
});
