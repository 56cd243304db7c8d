/** `wirewatch setup --undo`: removes what setup created, unless it was modified, and names what remains. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import {
  CONFIG,
  everyFile,
  newRoot,
  outcomes,
  PROGRAM,
  read,
  setup,
  UNIT,
  USER,
  wirewatch,
} from '../support/setup.ts';

describe('--undo', () => {
  test('removes what setup created, and nothing else', () => {
    const root = newRoot();
    mkdirSync(path.join(root, 'var/lib/wirewatch'), { recursive: true });
    writeFileSync(path.join(root, 'var/lib/wirewatch/detections.db'), 'data');
    mkdirSync(path.join(root, 'etc/systemd/system'), { recursive: true });
    writeFileSync(path.join(root, 'etc/systemd/system/other.service'), '');
    const before = everyFile(root);
    setup(root);
    const shown = setup(root, '--undo', '--dry-run');
    assert.equal(everyFile(root).length, before.length + 3);
    const undone = setup(root, '--undo');
    assert.deepEqual(outcomes(undone), [`${CONFIG} removed`, `${UNIT} removed`, `${USER} removed`]);
    assert.deepEqual(undone.next, [
      '# These remain. Delete them by hand when you no longer need them:',
      '# /var/lib/wirewatch: the data folder',
      '# /var/cache/wirewatch: the cache, which can be deleted at any time',
      `# ${PROGRAM}: the program`,
      '# the user of the service, and its group',
    ]);
    assert.deepEqual(outcomes(shown), outcomes(undone));
    assert.deepEqual(everyFile(root), before);
    assert.equal(existsSync(path.join(root, 'etc/wirewatch')), false);
    assert.deepEqual(outcomes(setup(root, '--undo')), [
      `${CONFIG} absent`,
      `${UNIT} absent`,
      `${USER} absent`,
    ]);
  });

  test('names the folders outside the data folder that stay', () => {
    const root = newRoot();
    setup(root, '--drop', '/srv/exports');
    const backups = read(root, CONFIG).replace(/^folder = ""$/m, 'folder = "/backups"');
    assert.ok(setup(root, '--undo', '--dry-run').next.includes('# /srv/exports: the drop folder'));
    writeFileSync(path.join(root, CONFIG), backups);
    const { next } = setup(root, '--undo');
    assert.ok(next.includes('# /srv/exports: the drop folder'), next.join('\n'));
  });

  test('keeps modified files, and says so', () => {
    const root = newRoot();
    setup(root);
    writeFileSync(path.join(root, CONFIG), read(root, CONFIG).replace('port = 8080', 'port = 8081'));
    const { files, not_applied } = setup(root, '--undo');
    assert.equal(not_applied.length, 1);
    assert.match(
      not_applied[0] ?? '',
      /^\/etc\S+: it was modified after .* remove it anyway: rm \S+wirewatch\.toml$/,
    );
    assert.equal(wirewatch('setup', '--undo', '--root', root).status, 1);
    assert.deepEqual(
      files.map(({ outcome, reason }) => [outcome, reason]),
      [
        ['kept', 'it was modified after setup wrote it'],
        ['removed', undefined],
        ['removed', undefined],
      ],
    );
    assert.match(read(root, CONFIG), /^port = 8081$/m);
  });

  test("finds a service's files even without systemd", () => {
    const root = newRoot();
    setup(root);
    const undone = wirewatch('setup', '--undo', '--root', root, '--data', '/data', '--json');
    assert.equal(undone.status, 0, undone.stderr);
    assert.deepEqual(outcomes(JSON.parse(undone.stdout)), [
      '/data/wirewatch.toml absent',
      `${CONFIG} removed`,
      `${UNIT} removed`,
      `${USER} removed`,
    ]);
    assert.deepEqual(everyFile(root), []);
    setup(root);
    setup(root, '--undo', '--no-service', '--data', '/data');
    assert.equal(everyFile(root).length, 3, 'with --no-service there is only the configuration');
  });

  test('is refused while the service is enabled', () => {
    const root = newRoot();
    setup(root);
    const wants = path.join(root, 'etc/systemd/system/multi-user.target.wants');
    mkdirSync(wants);
    symlinkSync('../wirewatch.service', path.join(wants, 'wirewatch.service'));
    const end = wirewatch('setup', '--undo', '--root', root, '--service');
    assert.equal(end.status, 1);
    assert.match(end.stderr, /the service is enabled .* disable wirewatch$/m);
    assert.ok(existsSync(path.join(root, UNIT)));
  });
});
