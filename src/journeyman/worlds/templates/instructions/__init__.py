"""Templates of instruction following: documents under many constraints, exact spans out of long documents."""
