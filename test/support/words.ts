/** The words of a text, so that a long list of names takes few lines. */
export const words = (text: string): string[] => text.match(/\S+/g) ?? [];
