package verdict

var ScopeOf = scopeOf
