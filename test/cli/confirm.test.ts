/** The question before something is removed. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { confirm } from '../../src/cli/operation-command.ts';

describe('the question', () => {
  function ask(typed: string | null, isTTY = true) {
    const input = Object.assign(new PassThrough(), { isTTY });
    const output = Object.assign(new PassThrough(), { isTTY });
    if (typed === null) input.end();
    else input.write(typed);
    return {
      asked: confirm('This removes it.', '7001', { input, output }),
      shown: () => String(output.read()),
    };
  }

  test('continues when the name to remove was typed', async () => {
    const { asked, shown } = ask(' 7001 \n');
    await asked;
    assert.equal(shown(), 'This removes it.\nType 7001 to confirm: ');
  });

  test('removes nothing for another answer, or none', async () => {
    for (const typed of ['y\n', '\n', '7002\n', null])
      await assert.rejects(ask(typed).asked, { code: 'failed', message: /nothing was done/ });
    await assert.rejects(ask('7001\n', false).asked, { code: 'usage', message: /--yes/ });
  });
});
