/** Patch existing nodes to match new ones and keep equal nodes, so that focus, selection and scroll positions
 * survive. Event listeners must therefore be on an ancestor of the patched nodes. */

export function patchChildren(parent, children) {
  children.forEach((child, place) => {
    const old = parent.childNodes[place];
    if (old === undefined) parent.append(child);
    else if (isAlike(old, child)) patch(old, child);
    else old.replaceWith(child);
  });
  while (parent.childNodes.length > children.length) parent.lastChild.remove();
}

function isAlike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

function patch(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  patchChildren(old, [...fresh.childNodes]);
}
