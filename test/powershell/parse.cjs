// Parses PowerShell. Standard input is {"library", "runtime", "grammar", "scripts"}: the
// paths of web-tree-sitter's two files and of the grammar, and the scripts by name.
// Standard output is the syntax errors of each, as {"line", "column", "text"}.
const { readFileSync } = require('node:fs');

function errors(node, found) {
  if (node.isError || node.isMissing) {
    const { row, column } = node.startPosition;
    found.push({ line: row + 1, column: column + 1, text: node.isMissing ? `missing ${node.type}` : node.text.slice(0, 80) });
  } else if (node.hasError) {
    node.children.forEach((child) => errors(child, found));
  }
  return found;
}

(async () => {
  const asked = JSON.parse(readFileSync(0, 'utf8'));
  const { Parser, Language } = require(asked.library);
  await Parser.init({ locateFile: () => asked.runtime });
  const parser = new Parser();
  parser.setLanguage(await Language.load(asked.grammar));
  const said = {};
  for (const [name, text] of Object.entries(asked.scripts)) {
    said[name] = errors(parser.parse(text).rootNode, []);
  }
  process.stdout.write(JSON.stringify(said));
})();
